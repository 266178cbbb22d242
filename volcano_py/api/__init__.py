"""What goes over the wire: typed objects, quantities, selectors and every key once; no behaviour beyond reading them."""
