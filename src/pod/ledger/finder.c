#include "pod/ledger/finder.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "pod/ledger/pod_identity.h"

/* This many paths are looked at one by one before directories are read, and this many entries of a
 * directory are read. */
#define LOOKS_MAX 64u
#define LISTED_MAX 16384u

struct state {
    struct dv_arena *arena;
    struct dv_map dirs; /* struct listing by path */
    size_t n_looks;
};

struct dv_finder {
    struct dv_identity_host host; /* first, so that `look` can get the state from it */
    struct state *state;
};

struct listing {
    struct dv_map names;
    bool is_whole; /* otherwise a name that is not in the listing may still be in the directory */
};

static struct listing *read_listing(struct state *state, dv_str path)
{
    struct listing *listing = DV_NEW(state->arena, struct listing);
    DIR *dir = opendir(dv_str_to_c(path, state->arena));
    const struct dirent *entry;
    size_t n = 0;

    dv_map_init(&listing->names);
    while (dir && (entry = readdir(dir)) != NULL && n < LISTED_MAX) {
        (void)dv_map_set(&listing->names, dv_str_copy(dv_str_from_c(entry->d_name), state->arena),
                         listing);
        n++;
    }
    listing->is_whole = dir ? n < LISTED_MAX : errno == ENOENT;
    if (dir)
        (void)closedir(dir); /* only read from */
    (void)dv_map_set(&state->dirs, dv_str_copy(path, state->arena), listing);
    return listing;
}

/* Whether the path may exist: its directory was not read, or not to the end, or has the name. */
static bool may_be_there(struct state *state, dv_str path)
{
    size_t slash = path.n;
    struct listing *listing;
    dv_str dir;

    if (++state->n_looks <= LOOKS_MAX)
        return true;
    while (slash > 0 && path.p[slash - 1] != '/')
        slash--;
    dir = slash > 1 ? dv_str_slice(path, 0, slash - 1) : DV_STR("/");
    listing = dv_map_get(&state->dirs, dir);
    if (!listing)
        listing = read_listing(state, dir);
    return !listing->is_whole || dv_map_get(&listing->names, dv_str_slice(path, slash, path.n));
}

static bool look(const struct dv_identity_host *host, dv_str path, struct dv_identity_node *node)
{
    const struct dv_finder *finder = (const struct dv_finder *)(const void *)host;
    char name[PATH_MAX];
    struct stat st;

    if (path.n >= sizeof(name) || !may_be_there(finder->state, path))
        return false;
    memcpy(name, path.p, path.n);
    name[path.n] = '\0';
    if (stat(name, &st) < 0 || (!S_ISBLK(st.st_mode) && !S_ISCHR(st.st_mode)))
        return false;
    *node = (struct dv_identity_node){S_ISBLK(st.st_mode), major(st.st_rdev), minor(st.st_rdev)};
    return true;
}

struct dv_finder *dv_finder_new(struct dv_arena *arena)
{
    struct dv_finder *finder = DV_NEW(arena, struct dv_finder);

    finder->host.look = look;
    finder->state = DV_NEW(arena, struct state);
    finder->state->arena = arena;
    dv_map_init(&finder->state->dirs);
    return finder;
}

void dv_finder_fini(struct dv_finder *finder)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&finder->state->dirs, &at)) != NULL;)
        dv_map_fini(&((struct listing *)entry->value)->names);
    dv_map_fini(&finder->state->dirs);
}

const struct dv_identity_host *dv_finder_host(const struct dv_finder *finder)
{
    return &finder->host;
}
