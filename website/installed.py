"""The plugins of this distribution, which the site calls built in. Other plugins that
are installed when the site is built are left out.
"""

from __future__ import annotations

from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import Catalogue

PLUGINS = PluginManager(entry_points=False)
CATALOGUE = Catalogue(PLUGINS.protocol_directories)
