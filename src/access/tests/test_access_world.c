#include "access/tests/test_access_world.h"

#include "base/arena.h"
#include "base/vec.h"
#include "support/dvtest.h"
#include "json/json.h"

int world_setup(void **state)
{
    struct dv_arena *arena = dv_arena_new();
    struct world *world = DV_NEW(arena, struct world);

    world->arena = arena;
    world->access = dv_access_new();
    *state = world;
    return 0;
}

int world_teardown(void **state)
{
    struct world *world = *state;

    dv_access_free(world->access);
    dv_arena_free(world->arena);
    return 0;
}

void *world_read(struct world *world, enum dv_kind_id id, const char *text)
{
    const struct dv_kind *kind = dv_kind(id);
    const struct dv_message *message = kind->versions->message;
    void *value = dv_arena_alloc(world->arena, message->size, message->align);
    struct dv_err err;
    const struct dv_json *doc = dv_yaml_parse(dv_str_from_c(text), NULL, world->arena, &err);

    if (!doc || !dv_decode_json(message, doc, DV_UNKNOWN_DROP, world->arena, value, NULL, &err))
        fail_msg("%s: %s", text, err.msg);
    dv_default(kind, kind->versions, value, (struct dv_time){0}, world->arena);
    return value;
}

void world_set(struct world *world, enum dv_kind_id kind, const char *text)
{
    struct dv_object *object = dv_object_new(dv_kind(kind), world_read(world, kind, text));

    dv_access_changed(world->access, NULL, object);
    dv_object_unref(object);
}

void world_remove(struct world *world, enum dv_kind_id kind, const char *text)
{
    struct dv_object *object = dv_object_new(dv_kind(kind), world_read(world, kind, text));

    dv_access_changed(world->access, object, NULL);
    dv_object_unref(object);
}

struct dv_api_user_info world_user(struct world *world, const char *words)
{
    dv_str rest = dv_str_from_c(words);
    struct dv_api_user_info user = {0};
    DV_VEC(dv_str) groups = {0};
    dv_str word;

    (void)dv_str_split(&rest, ' ', &user.username);
    while (dv_str_split(&rest, ' ', &word))
        *dv_vec_add_in(&groups, world->arena) = word;
    user.groups = groups.v;
    user.n_groups = groups.n;
    return user;
}

struct dv_access_request world_request(struct world *world, const char *text)
{
    dv_str rest = dv_str_copy(dv_str_from_c(text), world->arena);
    struct dv_access_request request = {0};
    dv_str what, word;
    size_t at;

    (void)dv_str_split(&rest, ' ', &request.verb);
    (void)dv_str_split(&rest, ' ', &what);
    if (what.p[0] == '/') {
        request.path = what;
        return request;
    }
    at = dv_str_find_char(what, '/');
    request.subresource = at < what.n ? dv_str_slice(what, at + 1, what.n) : DV_STR_NONE;
    what = dv_str_slice(what, 0, at);
    at = dv_str_find_char(what, '.');
    request.group = at < what.n ? dv_str_slice(what, at + 1, what.n) : DV_STR_NONE;
    request.resource = dv_str_slice(what, 0, at);
    while (dv_str_split(&rest, ' ', &word))
        if (!dv_str_eq(word, DV_STR("in")))
            request.name = word;
        else
            (void)dv_str_split(&rest, ' ', &request.namespace);
    return request;
}

bool world_may(struct world *world, const char *words, const char *text)
{
    struct dv_api_user_info user = world_user(world, words);
    struct dv_access_request request = world_request(world, text);

    return dv_access_allows(world->access, &user, &request);
}
