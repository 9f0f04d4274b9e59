"""The documentation as a site: pages that are written, pages that are generated, and checks of both."""
