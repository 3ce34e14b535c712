#include "serve/kubelet/node_pages.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/str.h"
#include "cri/cri.h"
#include "pod/agent.h"
#include "proto/cri_v1.pb-c.h"
#include "resource/resource.h"

#define LIST_BEGIN "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":["
#define LIST_END "]}\n"

/* The members of a list do not say what they are: the list does. */
static void print_pod(const struct dv_api_pod *pod, bool *is_first, struct dv_buf *buf)
{
    if (!*is_first)
        dv_buf_add_char(buf, ',');
    *is_first = false;
    dv_encode_json_text(&dv_message_pod, pod, NULL, DV_STR(""), buf);
}

void dv_node_print_pods(const struct dv_agent *agent, struct dv_buf *buf)
{
    const struct dv_object *object;
    bool is_first = true;

    dv_buf_add_c(buf, LIST_BEGIN);
    for (size_t at = 0; agent && (object = dv_agent_next_pod(agent, &at)) != NULL;)
        print_pod(object->value, &is_first, buf);
    dv_buf_add_c(buf, LIST_END);
}

static void print_running(const struct dv_cri_pod *from, struct dv_arena *arena, bool *is_first,
                          struct dv_buf *buf)
{
    struct dv_api_pod pod = {.metadata.uid = from->uid};

    pod.spec.containers = DV_NEW_ARRAY(arena, struct dv_api_container, from->n_containers);
    for (size_t i = 0; i < from->n_containers; i++) {
        const CriV1__ContainerStatus *container = from->containers[i];
        struct dv_api_container *to = &pod.spec.containers[pod.spec.n_containers];

        if (container->state != CRI_V1__CONTAINER_STATE__CONTAINER_RUNNING)
            continue;
        to->name = dv_str_from_c(container->metadata->name);
        to->image = dv_str_from_c(container->image ? container->image->image : "");
        pod.spec.n_containers++;
    }
    if (pod.spec.n_containers == 0 || from->n_sandboxes == 0)
        return;
    pod.metadata.name = dv_str_from_c(from->sandboxes[0]->metadata->name);
    pod.metadata.namespace = dv_str_from_c(from->sandboxes[0]->metadata->namespace_);
    print_pod(&pod, is_first, buf);
}

void dv_node_print_running(const struct dv_cri *cri, struct dv_buf *buf)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_cri_pod *pod;
    bool is_first = true;

    dv_buf_add_c(buf, LIST_BEGIN);
    for (size_t at = 0; cri && (pod = dv_cri_view_next(cri, &at)) != NULL;)
        print_running(pod, arena, &is_first, buf);
    dv_buf_add_c(buf, LIST_END);
}
