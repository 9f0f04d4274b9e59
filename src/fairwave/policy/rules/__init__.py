"""Rules by which one device chooses its iterations and power: one small file each, listed in `fairwave.extensions`."""
