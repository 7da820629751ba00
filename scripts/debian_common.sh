# Shared by the scripts that need Debian's packages.

# install_packages NAME…: installs them if the user is root on Debian. The caller checks whether that helped.
install_packages() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 0
    echo "installing $*"
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@"; } >/dev/null 2>&1 || true
}
