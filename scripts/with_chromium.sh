#!/bin/sh
# Runs a command whose tests show pages in Chromium. If Chromium is missing, first installs Debian's package, if the user
# is root. Without Chromium those tests print a message, and fail if the variable CI is set.
set -eu
. "$(dirname "$0")/debian_common.sh"

have_chromium() {
    command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null
}

have_chromium || install_packages chromium
exec "$@"
