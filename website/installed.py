"""What the site calls built in: the plugins of this distribution, whatever else is
installed where it is built.
"""

from __future__ import annotations

from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import Catalogue

PLUGINS = PluginManager(entry_points=False)
CATALOGUE = Catalogue(PLUGINS.protocol_directories)
