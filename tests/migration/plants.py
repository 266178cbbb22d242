"""All differences, each planted into a clean copy by one small function, with what the check must find."""

from tests.migration import plants_of_installation, plants_of_objects, plants_of_settings
from tests.migration.planting import PLANTS, Plant

MODULES = (plants_of_installation, plants_of_objects, plants_of_settings)
"""Their import registers the plants."""

__all__ = ["MODULES", "PLANTS", "Plant"]
