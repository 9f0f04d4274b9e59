"""The parameter table: strict models, presets, TOML files and overrides."""
