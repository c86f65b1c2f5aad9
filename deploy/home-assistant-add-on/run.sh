#!/bin/sh
# Starts the guard with the add-on's own settings file; the first start writes one to edit.
set -eu
config=${GUARD_CONFIG:-/config/guard.toml}
options=${GUARD_OPTIONS:-/data/options.json}
[ -f "$config" ] || meterveil guard init --config "$config"
live=""
grep -q '"live": *true' "$options" 2>/dev/null && live="--live"
exec meterveil guard --config "$config" $live
