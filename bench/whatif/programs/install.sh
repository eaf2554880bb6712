#!/bin/bash
# Installs what the programs in this folder need, besides a JDK 17 (Debian 12, root). It upgrades nothing.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
apt-get install -y -q --no-install-recommends --no-upgrade -o DPkg::Lock::Timeout=600 \
  libasm-java libguava-java libbsh-java libh2-java liblucene4.10-java
