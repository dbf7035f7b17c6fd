"""An encoder that has read unlabelled text before it sees a label."""
