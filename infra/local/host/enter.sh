# The `unshare` tier: runs as root of a fresh user namespace, builds a root directory of bind
# mounts, moves into it, then starts pid 1 in namespaces that this user namespace owns.
set -e
place=$1; etc=$2; system=$3; exposed=$4; devices=$5; covered=$6; network=$7; init=$8
root=$place/root
mkdir -p "$root"
mount -t tmpfs -o mode=755 sandbox "$root"
cd "$root"
mkdir -p usr proc dev/shm etc home/user tmp run old
bind_read_only() {
    if [ -d "$1" ]; then mkdir -p "$2"; else mkdir -p "${2%/*}"; : > "$2"; fi
    mount --rbind "$1" "$2"
    mount -o remount,bind,ro "$2" 2>/dev/null || mount -o remount,bind,ro,nosuid,nodev "$2"
}
bind_read_only /usr usr
for name in $system; do
    if [ -L "/$name" ]; then ln -s "$(readlink "/$name")" "$name"
    elif [ -d "/$name" ]; then bind_read_only "/$name" "$name"; fi
done
for name in $exposed; do bind_read_only "/etc/$name" "etc/$name"; done
for file in "$etc"/*; do bind_read_only "$file" "etc/${file##*/}"; done
for name in $devices; do : > "dev/$name"; mount --bind "/dev/$name" "dev/$name"; done
ln -s /proc/self/fd dev/fd
mount -t tmpfs sandbox dev/shm
mount -t tmpfs sandbox run
mount --bind "$place/home" home/user
mount --bind "$place/tmp" tmp
# A new proc may only be mounted where one is visible already.
mount --rbind /proc proc
pivot_root . old
umount -l /old
rmdir /old
mount -o remount,bind,ro /
cd /home/user
[ "$network" = yes ] || own_network=--net
inner='
for name in $1; do
    if [ -e "/proc/$name" ]; then
        mount --bind "/proc/$name" "/proc/$name" && mount -o remount,bind,ro "/proc/$name"
    fi
done
hostname sandbox 2>/dev/null || true
[ -z "$2" ] || ip link set lo up 2>/dev/null || true
exec env -i /bin/sh -c "$3"
'
exec unshare $own_network --pid --mount --ipc --uts --fork --kill-child --mount-proc -- \
    /bin/sh -c "$inner" sandbox "$covered" "$own_network" "$init"
