"""Language models of the Llama layout: text in, text out."""
