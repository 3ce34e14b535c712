#include "serve/kubelet/node_pages.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/str.h"
#include "base/vec.h"
#include "cri/cri.h"
#include "loop/loop.h"
#include "pod/agent.h"
#include "proto/cri_v1.pb-c.h"
#include "resource/resource.h"
#include "rest/rest.h"
#include "serve/wire/answer_parts.h"

#define LIST_BEGIN "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":["
#define LIST_END "]}\n"

struct page {
    struct dv_parts parts;
    struct dv_arena *arena; /* holds this */
    DV_VEC(const struct dv_api_pod *) pods;
    DV_VEC(struct dv_object *) objects; /* references that keep the pods, if they are objects' */
    size_t n_bytes;                     /* about, of the answer */
    size_t n_printed;
};

/* Runs on a worker. The members of a list do not say what they are: the list does. */
static bool print_part(struct dv_parts *parts, size_t n_bytes, struct dv_buf *part)
{
    struct page *page = DV_CONTAINER(parts, struct page, parts);

    if (page->n_printed == 0)
        dv_buf_add_c(part, LIST_BEGIN);
    while (part->n < n_bytes && page->n_printed < page->pods.n) {
        if (page->n_printed > 0)
            dv_buf_add_char(part, ',');
        dv_encode_json_text(&dv_message_pod, page->pods.v[page->n_printed], NULL, DV_STR(""), part);
        page->n_printed++;
    }
    if (page->n_printed < page->pods.n)
        return false;
    dv_buf_add_c(part, LIST_END);
    return true;
}

static void free_page(struct dv_parts *parts)
{
    struct page *page = DV_CONTAINER(parts, struct page, parts);

    for (size_t i = 0; i < page->objects.n; i++)
        dv_object_unref(page->objects.v[i]);
    dv_loop_free_arena(parts->priv.loop, page->arena);
}

static struct page *new_page(void)
{
    struct dv_arena *arena = dv_arena_new();
    struct page *page = DV_NEW(arena, struct page);

    page->arena = arena;
    page->parts.print = print_part;
    page->parts.free = free_page;
    return page;
}

static void start(struct page *page, struct dv_loop *loop, struct dv_rest_call *call)
{
    dv_rest_call_add_field(call, DV_STR("Content-Type"), DV_STR("application/json"));
    dv_parts_start(&page->parts, loop, call, page->n_bytes);
}

void dv_node_answer_pods(const struct dv_agent *agent, struct dv_loop *loop,
                         struct dv_rest_call *call)
{
    struct page *page = new_page();
    struct dv_object *object;

    for (size_t at = 0; agent && (object = dv_agent_next_pod(agent, &at)) != NULL;) {
        *dv_vec_add_in(&page->objects, page->arena) = dv_object_ref(object);
        *dv_vec_add_in(&page->pods, page->arena) = object->value;
        page->n_bytes += object->size_bytes;
    }
    start(page, loop, call);
}

/* Copies what is shown, because the view changes while a worker prints. */
static void add_running(struct page *page, const struct dv_cri_pod *from)
{
    struct dv_api_pod *pod = DV_NEW(page->arena, struct dv_api_pod);
    struct dv_arena *arena = page->arena;

    pod->spec.containers = DV_NEW_ARRAY(arena, struct dv_api_container, from->n_containers);
    for (size_t i = 0; i < from->n_containers; i++) {
        const CriV1__ContainerStatus *container = from->containers[i];
        struct dv_api_container *to = &pod->spec.containers[pod->spec.n_containers];

        if (container->state != CRI_V1__CONTAINER_STATE__CONTAINER_RUNNING)
            continue;
        to->name = dv_str_copy(dv_str_from_c(container->metadata->name), arena);
        to->image =
            dv_str_copy(dv_str_from_c(container->image ? container->image->image : ""), arena);
        page->n_bytes += to->name.n + to->image.n;
        pod->spec.n_containers++;
    }
    if (pod->spec.n_containers == 0 || from->n_sandboxes == 0)
        return;
    pod->metadata.uid = dv_str_copy(from->uid, arena);
    pod->metadata.name = dv_str_copy(dv_str_from_c(from->sandboxes[0]->metadata->name), arena);
    pod->metadata.namespace =
        dv_str_copy(dv_str_from_c(from->sandboxes[0]->metadata->namespace_), arena);
    *dv_vec_add_in(&page->pods, arena) = pod;
}

void dv_node_answer_running(const struct dv_cri *cri, struct dv_loop *loop,
                            struct dv_rest_call *call)
{
    struct page *page = new_page();
    const struct dv_cri_pod *pod;

    for (size_t at = 0; cri && (pod = dv_cri_view_next(cri, &at)) != NULL;)
        add_running(page, pod);
    start(page, loop, call);
}
