#include "pod/runner/pull_secret.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/vec.h"
#include "resource/resource.h"
#include "json/json.h"

/* Where Docker keeps the credentials of the registry that names without one mean. */
#define DEFAULT_REGISTRY DV_STR("index.docker.io")
/* The limit of all secrets of a pod together: some thousand registries. What one secret may have is
 * less. */
#define SECRETS_BYTES_MAX (4u << 20)

struct entry {
    dv_str address; /* "registry.example.com:5000/team": host, port, path */
    size_t place;   /* among all */
    struct dv_pull_auth auth;
};

struct entries {
    DV_VEC(struct entry) all;
    struct dv_arena *arena;
    size_t n_bytes; /* that were read */
};

/* ---- reading secrets ---- */

static dv_str text_of(const struct dv_json *object, const char *name)
{
    const struct dv_json *node = dv_json_get(object, dv_str_from_c(name));
    struct dv_err absent;
    dv_str text;

    return node && dv_json_as_str(node, &text, &absent) ? text : DV_STR("");
}

/* Credentials stand in two members, or as base64 of "user:password" in one, which counts more. */
static bool read_auth(const struct dv_json *member, struct dv_arena *arena,
                      struct dv_pull_auth *auth)
{
    dv_str both = text_of(member, "auth");
    size_t colon;

    auth->username = text_of(member, "username");
    auth->password = text_of(member, "password");
    if (both.n > 0) {
        if (!dv_base64_decode(both, arena, &both))
            return false;
        colon = dv_str_find_char(both, ':');
        if (colon == both.n)
            return false;
        auth->username = dv_str_slice(both, 0, colon);
        auth->password = dv_str_slice(both, colon + 1, both.n);
        while (auth->password.n > 0 && auth->password.p[auth->password.n - 1] == '\0')
            auth->password.n--;
    }
    return auth->username.n > 0 || auth->password.n > 0;
}

/* "https://registry.example.com/v2/team" is "registry.example.com/team". */
static dv_str address_of(dv_str key, struct dv_arena *arena)
{
    size_t scheme = dv_str_find(key, DV_STR("://"));
    size_t slash;
    dv_str path;

    if (scheme < key.n)
        key = dv_str_slice(key, scheme + 3, key.n);
    slash = dv_str_find_char(key, '/');
    path = dv_str_slice(key, slash, key.n);
    if (dv_str_starts_with(path, DV_STR("/v1/")) || dv_str_starts_with(path, DV_STR("/v2/")))
        path = dv_str_slice(path, 3, path.n);
    if (path.n <= 1)
        return dv_str_slice(key, 0, slash);
    return dv_str_printf(arena, "%.*s%.*s", DV_FMT(dv_str_slice(key, 0, slash)), DV_FMT(path));
}

static void read_registries(const struct dv_json *registries, struct entries *entries)
{
    const struct dv_json *member;

    if (!registries || !dv_json_is(registries, DV_JSON_OBJECT))
        return;
    for (member = dv_json_first(registries); member; member = dv_json_next(member)) {
        struct entry entry = {.address = address_of(dv_json_key(member), entries->arena),
                              .place = entries->all.n};

        if (dv_json_is(member, DV_JSON_OBJECT) && read_auth(member, entries->arena, &entry.auth))
            *dv_vec_add_in(&entries->all, entries->arena) = entry;
    }
}

static void read_secret(const struct dv_api_secret *secret, struct entries *entries)
{
    bool is_new = dv_str_eq(secret->type, DV_STR("kubernetes.io/dockerconfigjson"));
    bool is_old = dv_str_eq(secret->type, DV_STR("kubernetes.io/dockercfg"));
    const struct dv_str_entry *data = dv_entry_find(
        secret->data, secret->n_data, is_new ? DV_STR(".dockerconfigjson") : DV_STR(".dockercfg"));
    const struct dv_json *doc;
    struct dv_err err;

    if ((!is_new && !is_old) || !data || data->value.n > SECRETS_BYTES_MAX - entries->n_bytes)
        return;
    entries->n_bytes += data->value.n;
    doc = dv_json_parse(data->value, NULL, entries->arena, &err);
    if (!doc || !dv_json_is(doc, DV_JSON_OBJECT))
        return;
    read_registries(is_new ? dv_json_get(doc, DV_STR("auths")) : doc, entries);
}

/* ---- matching ---- */

static bool is_default_registry(dv_str image)
{
    size_t slash = dv_str_find_char(image, '/');
    dv_str first = dv_str_slice(image, 0, slash);

    if (slash == image.n)
        return true;
    if (dv_str_eq(first, DV_STR("docker.io")) || dv_str_eq(first, DEFAULT_REGISTRY))
        return true;
    return dv_str_find_char(first, '.') == first.n && dv_str_find_char(first, ':') == first.n &&
           !dv_str_eq(first, DV_STR("localhost"));
}

dv_str dv_pull_registry(dv_str image)
{
    return is_default_registry(image) ? DEFAULT_REGISTRY
                                      : dv_str_slice(image, 0, dv_str_find_char(image, '/'));
}

/* Whether the hosts have as many parts, and each part of one matches the pattern in the other. */
static bool does_host_match(dv_str pattern, dv_str host, struct dv_arena *arena)
{
    dv_str part;
    dv_str word;

    while (dv_str_split(&pattern, '.', &part)) {
        if (!dv_str_split(&host, '.', &word) ||
            fnmatch(dv_str_to_c(part, arena), dv_str_to_c(word, arena), 0) != 0)
            return false;
    }
    return !dv_str_split(&host, '.', &word);
}

static bool does_match(dv_str address, dv_str image, struct dv_arena *arena)
{
    size_t slash = dv_str_find_char(address, '/');
    size_t image_slash = dv_str_find_char(image, '/');
    dv_str host = dv_str_slice(address, 0, slash);
    dv_str image_host = dv_str_slice(image, 0, image_slash);
    size_t colon = dv_str_find_char(host, ':');
    size_t image_colon = dv_str_find_char(image_host, ':');

    return dv_str_eq(dv_str_slice(host, colon, host.n),
                     dv_str_slice(image_host, image_colon, image_host.n)) &&
           does_host_match(dv_str_slice(host, 0, colon), dv_str_slice(image_host, 0, image_colon),
                           arena) &&
           dv_str_starts_with(dv_str_slice(image, image_slash, image.n),
                              dv_str_slice(address, slash, address.n));
}

/* The reference tries longer paths first by walking the addresses backwards. */
static int compare(const void *a, const void *b)
{
    const struct entry *left = a;
    const struct entry *right = b;
    int order = dv_str_cmp(right->address, left->address);

    if (order != 0)
        return order;
    return left->place < right->place ? -1 : left->place > right->place;
}

size_t dv_pull_secret_find(const struct dv_api_secret *const *secrets, size_t n_secrets,
                           dv_str image, struct dv_arena *arena, struct dv_pull_auth **auths)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    struct entries entries = {.arena = scratch};
    bool is_default = is_default_registry(image);
    DV_VEC(struct dv_pull_auth) found = {0};

    for (size_t i = 0; i < n_secrets; i++)
        read_secret(secrets[i], &entries);
    if (entries.all.n > 1)
        qsort(entries.all.v, entries.all.n, sizeof(entries.all.v[0]), compare);
    for (size_t i = 0; i < entries.all.n; i++) {
        const struct entry *entry = &entries.all.v[i];

        if (!does_match(entry->address, image, scratch) &&
            !(is_default && dv_str_eq(entry->address, DEFAULT_REGISTRY)))
            continue;
        *dv_vec_add_in(&found, arena) = (struct dv_pull_auth){
            .username = dv_str_copy(entry->auth.username, arena),
            .password = dv_str_copy(entry->auth.password, arena),
        };
    }
    *auths = found.v;
    return found.n;
}
