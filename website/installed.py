"""The plugins of this distribution, which the site calls built in, without others that
are installed at build time.
"""

from __future__ import annotations

from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import Catalogue

PLUGINS = PluginManager(entry_points=False)
CATALOGUE = Catalogue(PLUGINS.protocol_directories)
