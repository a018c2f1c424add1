"""Building blocks of models in torch: attention, caches, products, convolutions, devices."""
