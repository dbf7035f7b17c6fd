"""What people look at: pages, figures, tables, cards, label errors, what to label next."""
