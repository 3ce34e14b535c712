#include "support/dvtest.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/str.h"
#include "resource/resource.h"
#include "serve/kube/kube_call.h"
#include "serve/wire/kube_accept.h"
#include "serve/wire/kube_render.h"

#define TEXT_BYTES_MAX 65536u
/* As many changes as all watchers are told before any is told the next. */
#define N_PORTION 16u

static const enum dv_media medias[] = {DV_MEDIA_JSON, DV_MEDIA_PROTOBUF};

static struct dv_object *new_node(const char *name)
{
    const struct dv_api_node node = {
        .metadata = {.name = dv_str_from_c(name), .resource_version = DV_STR("7")}
    };

    return dv_object_new(dv_kind(DV_KIND_NODE), &node);
}

static struct dv_render render_as(enum dv_media media, enum dv_form form)
{
    const struct dv_kind *kind = dv_kind(DV_KIND_NODE);

    return (struct dv_render){
        .rendering = {.media = media, .form = form},
          .kind = kind, .version = &kind->versions[0]
    };
}

/* Every form of an event is that which is printed without a cache. */
static void an_event_is_as_it_is_printed_alone(void **state)
{
    static const char *const types[] = {"ADDED", "MODIFIED", "DELETED"};
    static const enum dv_form forms[] = {DV_FORM_OBJECT, DV_FORM_PARTIAL};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_event_cache *cache = dv_event_cache_new();
    struct dv_object *node = new_node("n");

    (void)state;
    for (size_t i = 0; i < DV_COUNT(types) * DV_COUNT(medias) * DV_COUNT(forms); i++) {
        const char *type = types[i % DV_COUNT(types)];
        struct dv_render render = render_as(medias[i / DV_COUNT(types) % DV_COUNT(medias)],
                                            forms[i / DV_COUNT(types) / DV_COUNT(medias)]);
        struct dv_buf alone;

        dv_buf_init(&alone, TEXT_BYTES_MAX);
        dv_render_event(&render, type, node, false, arena, &alone);
        assert_true(alone.n > 0);
        assert_true(dv_str_eq(dv_event_cache_get(cache, &render, type, node), dv_buf_str(&alone)));
        dv_buf_fini(&alone);
    }
    dv_object_unref(node);
    dv_event_cache_free(cache);
}

/* The text of a portion of changes in four forms lies where it was put: it was made once. */
static void a_text_is_made_once_for_all_watchers(void **state)
{
    struct dv_event_cache *cache = dv_event_cache_new();
    const struct dv_render renders[] = {
        render_as(DV_MEDIA_JSON, DV_FORM_OBJECT),
        render_as(DV_MEDIA_PROTOBUF, DV_FORM_OBJECT),
        render_as(DV_MEDIA_JSON, DV_FORM_PARTIAL),
        render_as(DV_MEDIA_PROTOBUF, DV_FORM_PARTIAL),
    };
    const char *texts[DV_COUNT(renders)][N_PORTION];
    struct dv_object *nodes[N_PORTION];

    (void)state;
    for (size_t i = 0; i < N_PORTION; i++)
        nodes[i] = new_node("n");
    for (size_t round = 0; round < 3; round++) /* three watchers of each form */
        for (size_t form = 0; form < DV_COUNT(renders); form++)
            for (size_t i = 0; i < N_PORTION; i++) {
                const char *text = dv_event_cache_object(cache, &renders[form], nodes[i]).p;

                if (round == 0)
                    texts[form][i] = text;
                assert_ptr_equal(text, texts[form][i]);
            }
    for (size_t i = 0; i < N_PORTION; i++)
        dv_object_unref(nodes[i]);
    dv_event_cache_free(cache);
}

static void a_row_of_a_table_is_printed_each_time(void **state)
{
    struct dv_event_cache *cache = dv_event_cache_new();
    struct dv_render render = render_as(DV_MEDIA_JSON, DV_FORM_TABLE);
    struct dv_object *node = new_node("n");
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str young;

    (void)state;
    node->meta->creation_timestamp = (struct dv_time){.seconds = 1000, .is_set = true};
    render.now = (struct dv_time){.seconds = 1007, .is_set = true};
    young = dv_str_copy(dv_event_cache_get(cache, &render, "ADDED", node), arena);
    render.now.seconds += 60;
    assert_false(dv_str_eq(young, dv_event_cache_get(cache, &render, "ADDED", node)));
    dv_object_unref(node);
    dv_event_cache_free(cache);
}

static void a_text_is_dropped_when_it_is_old(void **state)
{
    struct dv_event_cache *cache = dv_event_cache_new();
    struct dv_render render = render_as(DV_MEDIA_JSON, DV_FORM_OBJECT);
    struct dv_object *old = new_node("old");
    struct dv_object *young = new_node("young");

    (void)state;
    (void)dv_event_cache_object(cache, &render, old);
    assert_true(dv_event_cache_age(cache));
    (void)dv_event_cache_object(cache, &render, young);
    assert_int_equal(old->n_refs, 2);
    assert_true(dv_event_cache_age(cache));
    assert_int_equal(old->n_refs, 1);
    assert_int_equal(young->n_refs, 2);
    assert_false(dv_event_cache_age(cache));
    assert_int_equal(young->n_refs, 1);
    assert_true(dv_event_cache_object(cache, &render, old).n > 0);
    dv_object_unref(old);
    dv_object_unref(young);
    dv_event_cache_free(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_is_as_it_is_printed_alone),
        cmocka_unit_test(a_text_is_made_once_for_all_watchers),
        cmocka_unit_test(a_row_of_a_table_is_printed_each_time),
        cmocka_unit_test(a_text_is_dropped_when_it_is_old),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
