"""A trained model in other forms: ONNX, sentence-transformers, the Hub, a smaller folder."""
