#!/usr/bin/env bash
# Builds the image with buildah, without a daemon, and tries it: size, versions and the demo, as the user it runs as.
# It needs root, buildah, and debootstrap where no base image can be pulled; it installs nothing itself.
# With IMAGE_ARCHIVE=FILE it also writes the image into an OCI archive.
set -euo pipefail
cd "$(dirname "$0")/../.."

LIMIT_MB=120 # above the base; the only place that says it
suite=bookworm
own_base=localhost/volcano-py-base:$suite
version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
image=localhost/volcano-py:$version

say() { printf 'image: %s\n' "$*"; }
fail() {
  say "$*" >&2
  exit 1
}

((EUID == 0)) || fail "it needs root, to mount what it builds: sudo make image"
command -v buildah >/dev/null || fail "buildah is missing: apt-get install buildah"

containers=()
scratch=$(mktemp -d)
clean_up() {
  ((${#containers[@]} == 0)) || buildah rm "${containers[@]}" >/dev/null
  rm -r "$scratch"
}
trap clean_up EXIT

# Inside a container, layers often cannot be mounted over each other; then every layer is a copy.
if ! buildah info >/dev/null 2>&1; then
  export STORAGE_DRIVER=vfs
  say "no overlay here: layers are copies ($STORAGE_DRIVER)"
fi
export BUILDAH_ISOLATION=chroot

# Sets `container` and `root`, where its files are.
start() {
  container=$(buildah from --pull-never "$1")
  containers+=("$container")
  root=$(buildah mount "$container")
}

# A small Debian with Python, to try the image on: it is made once and gets no security updates, so run it on no cluster.
# `buildah rmi` of it has it made anew.
make_own_base() {
  command -v debootstrap >/dev/null || fail "debootstrap is missing: apt-get install debootstrap"
  local mirror
  mirror=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 2>/dev/null | sed -n "s/^$suite //p" | head -n 1) || true
  start scratch
  say "making $own_base from ${mirror:=http://deb.debian.org/debian} (once)"
  debootstrap --variant=minbase --include=python3,python3-venv,python3-pip,ca-certificates \
    "$suite" "$root" "$mirror" >"$scratch/log" 2>&1 || {
    tail -n 20 "$scratch/log" >&2
    fail "debootstrap failed"
  }
  rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
  ln -s /usr/bin/python3 "$root/usr/local/bin/python" # where the official image has it
  buildah commit --quiet "$container" "$own_base" >/dev/null
}

base=$(sed -n 's/^ARG PYTHON_IMAGE=//p' Dockerfile)
if ! timeout 300 buildah pull --quiet --policy missing "docker.io/library/$base" >/dev/null 2>"$scratch/why"; then
  say "$base cannot be pulled: $(tail -n 1 "$scratch/why")"
  base=$own_base
  buildah inspect --type image "$base" >/dev/null 2>&1 || make_own_base
fi

# pip in the build reads what pip reads on this machine; none of it stays in the image.
settings=()
for name in $(sed -n 's/^ARG \(PIP_[A-Z_]*\)$/\1/p' Dockerfile); do
  [[ -z ${!name:-} ]] || settings+=(--build-arg "$name")
done
cert=${PIP_CERT:-/etc/ssl/certs/ca-certificates.crt}
for file in /etc/pip.conf "$HOME/.config/pip/pip.conf" "$HOME/.pip/pip.conf" "$cert" "${PIP_FIND_LINKS:-}"; do
  [[ ! -e $file ]] || settings+=(--volume "$file:$file:ro")
done

say "building $image on $base"
former=$(buildah inspect --type image --format '{{.FromImageID}}' "$image" 2>/dev/null || true)
buildah bud --quiet --layers=false --pull-never --build-arg PYTHON_IMAGE="$base" "${settings[@]}" --tag "$image" . \
  >"$scratch/log" 2>&1 || {
  tail -n 40 "$scratch/log" >&2
  fail "the build failed"
}
[[ -z $former ]] || buildah rmi "$former" >/dev/null 2>&1 || true # nameless now

bytes() { du --summarize --apparent-size --block-size=1 --one-file-system "$1" | cut -f 1; }
start "$base"
below=$(bytes "$root")
start "$image"
above=$((($(bytes "$root") - below + 999999) / 1000000))
say "$above MB above the base; the limit is $LIMIT_MB MB"
((above <= LIMIT_MB)) || fail "that is too much: see manifests/image/slim.sh, or raise LIMIT_MB in $0"

# As the image's own user, without any right of root's, and with the folders that everybody may write to read-only.
mkdir "$scratch/empty"
inside() {
  timeout 180 buildah run --cap-drop ALL --volume "$scratch/empty:/tmp:ro" --volume "$scratch/empty:/var/tmp:ro" \
    "$container" -- "$@"
}

[[ $(inside id -u) == 1000 ]] || fail "it runs as user $(inside id -u), not 1000"
for program in vc-scheduler vc-controller-manager volcano-py; do
  [[ $(inside "$program" --version) == "volcano_py $version" ]] || fail "$program does not say version $version"
done
say "every module of it can be imported, and the part of kubernetes_asyncio that it uses"
inside python -c '
import importlib, pkgutil, volcano_py, kubernetes_asyncio.config
for module in pkgutil.walk_packages(volcano_py.__path__, "volcano_py."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
'
say "volcano-py demo"
if ! inside volcano-py demo >"$scratch/demo" || ! grep -Eq 'all [0-9]+ were bound' "$scratch/demo"; then
  cat "$scratch/demo" >&2
  fail "the demo failed"
fi
sed -n '/^What happened/,/^$/p' "$scratch/demo"
written=$(find "$root" -xdev -user 1000)
[[ -z $written ]] || fail "it wrote files, which a read-only root file system would refuse: $written"
say "$image is built and runs"
if [[ -n ${IMAGE_ARCHIVE:-} ]]; then
  say "writing $IMAGE_ARCHIVE"
  buildah push --quiet "$image" "oci-archive:$IMAGE_ARCHIVE:volcano-py:$version"
fi
