"""What goes over the wire: typed objects, quantities and every key, once; no behaviour beyond reading them."""
