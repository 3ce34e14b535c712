#include "test_device_node.h"
#include "base/clock.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/num.h"
#include "base/row.h"
#include "base/vec.h"
#include "pb/pb.h"
#include "topology/topology.h"

#define TEXT_BYTES_MAX (1u << 20)

/* -- Text ----------------------------------------------------------------------------------- */

static int str_cmp(const void *a, const void *b)
{
    const dv_str *x = a;
    const dv_str *y = b;

    return dv_str_cmp(*x, *y);
}

static dv_str join(struct node *node, const dv_str *ids, size_t n, char separator)
{
    dv_str *sorted = DV_NEW_ARRAY(node->arena, dv_str, n);
    struct dv_buf buf;
    dv_str text;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    for (size_t i = 0; i < n; i++)
        sorted[i] = ids[i];
    qsort(sorted, n, sizeof(sorted[0]), str_cmp);
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            dv_buf_add_char(&buf, separator);
        dv_buf_add(&buf, sorted[i]);
    }
    text = dv_str_copy(dv_buf_str(&buf), node->arena);
    dv_buf_fini(&buf);
    return text;
}

static void add_nodes(struct dv_buf *buf, dv_str nodes)
{
    size_t topology = dv_pb_begin(buf, 3);
    dv_str node;

    while (nodes.n > 0 && dv_str_split(&nodes, ',', &node)) {
        size_t mark = dv_pb_begin(buf, 1);
        int64_t id;

        if (!dv_str_to_i64(node, &id))
            fail_msg("not a node: %.*s", DV_FMT(node));
        dv_pb_add_number(buf, 1, (uint64_t)id);
        dv_pb_end(buf, mark);
    }
    dv_pb_end(buf, topology);
}

static void add_device(struct dv_buf *buf, dv_str text)
{
    size_t at = dv_str_find_char(text, '@');
    dv_str id = dv_str_slice(text, 0, at);
    bool is_healthy = !dv_str_ends_with(id, DV_STR("!"));
    size_t mark = dv_pb_begin(buf, 1);

    dv_pb_add_bytes(buf, 1, dv_str_slice(id, 0, is_healthy ? id.n : id.n - 1));
    dv_pb_add_bytes(buf, 2, is_healthy ? DV_STR("Healthy") : DV_STR("Unhealthy"));
    if (at < text.n)
        add_nodes(buf, dv_str_slice(text, at + 1, text.n));
    dv_pb_end(buf, mark);
}

dv_str node_list_bytes(struct node *node, const char *devices)
{
    dv_str rest = dv_str_from_c(devices);
    struct dv_buf buf;
    dv_str device;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    while (rest.n > 0 && dv_str_split(&rest, ' ', &device))
        add_device(&buf, device);
    device = dv_str_copy(dv_buf_str(&buf), node->arena);
    dv_buf_fini(&buf);
    return device;
}

/* -- Plugins -------------------------------------------------------------------------------- */

static int setup(void **state, bool is_strict)
{
    struct dv_device_opts opts = {.is_strict = is_strict};
    struct node *node = DV_ALLOC(struct node);

    node->arena = dv_arena_new();
    node->state = dv_device_state_new(&opts);
    node->now_ns = 1000 * DV_NS_PER_S;
    dv_device_set_sources_ready(node->state, true);
    *state = node;
    return 0;
}

int node_setup(void **state)
{
    return setup(state, false);
}

int node_setup_strict(void **state)
{
    return setup(state, true);
}

int node_teardown(void **state)
{
    struct node *node = *state;

    dv_device_state_free(node->state);
    dv_arena_free(node->arena);
    free(node);
    return 0;
}

void node_connect(struct node *node, const char *resource, const char *socket)
{
    struct dv_device_plugin_options options = {node->needs_pre_start, node->preferred != NULL};
    struct dv_err err;

    assert_ok(dv_device_connect(node->state, dv_str_from_c(resource), dv_str_from_c(socket),
                                &options, &err),
              &err);
}

struct dv_device_diff node_list(struct node *node, const char *resource, const char *devices)
{
    struct dv_device_diff diff;
    struct dv_err err;

    assert_ok(dv_device_apply_list(node->state, dv_str_from_c(resource),
                                   node_list_bytes(node, devices), node->arena, &diff, &err),
              &err);
    return diff;
}

void node_register(struct node *node, const char *resource, const char *socket, const char *devices)
{
    node_connect(node, resource, socket);
    (void)node_list(node, resource, devices);
}

void node_disconnect(struct node *node, const char *resource, const char *socket)
{
    (void)dv_device_disconnect(node->state, dv_str_from_c(resource), dv_str_from_c(socket),
                               node->now_ns);
}

/* -- Operations ----------------------------------------------------------------------------- */

static void answer_preferred(struct node *node, struct dv_device_operation *op)
{
    const struct dv_device_step *step = dv_device_operation_step(op);
    dv_str rest = dv_str_from_c(node->preferred);
    struct dv_err err = {.code = node->preferred_fails, .msg = "no idea"};
    struct dv_buf buf;
    size_t mark;
    dv_str id;

    node->n_preferred++;
    node->available = join(node, step->ids, step->n_ids, ' ');
    node->must_include = join(node, step->must_include, step->n_must_include, ' ');
    node->size = step->size;
    if (node->while_asked)
        node->while_asked(node);
    if (node->preferred_fails != DV_OK) {
        dv_device_operation_refuse(op, &err);
        return;
    }
    dv_buf_init(&buf, TEXT_BYTES_MAX);
    mark = dv_pb_begin(&buf, 1);
    while (rest.n > 0 && dv_str_split(&rest, ' ', &id))
        dv_pb_add_bytes(&buf, 1, id);
    dv_pb_end(&buf, mark);
    dv_device_operation_answer(op, dv_buf_str(&buf));
    dv_buf_fini(&buf);
}

static void answer_allocate(struct node *node, struct dv_device_operation *op)
{
    struct dv_err err = {.code = node->allocate_fails, .msg = "no luck"};
    struct dv_buf buf;

    node->n_allocate++;
    if (node->allocate_fails != DV_OK) {
        dv_device_operation_refuse(op, &err);
        return;
    }
    dv_buf_init(&buf, TEXT_BYTES_MAX);
    if (!node->is_empty)
        dv_pb_add_bytes(&buf, 1, node->response ? *node->response : DV_STR(""));
    dv_device_operation_answer(op, dv_buf_str(&buf));
    dv_buf_fini(&buf);
}

static void answer_pre_start(struct node *node, struct dv_device_operation *op)
{
    const struct dv_device_step *step = dv_device_operation_step(op);
    struct dv_err err = {.code = node->pre_start_fails, .msg = "not now"};

    node->n_pre_start++;
    node->pre_started = join(node, step->ids, step->n_ids, ' ');
    if (node->pre_start_fails != DV_OK)
        dv_device_operation_refuse(op, &err);
    else
        dv_device_operation_answer(op, DV_STR(""));
}

static bool run(struct node *node, struct dv_device_operation *op)
{
    const struct dv_device_step *step;
    bool is_done;

    while ((step = dv_device_operation_step(op))->kind < DV_DEVICE_DONE) {
        if (step->kind == DV_DEVICE_ASK_PREFERRED)
            answer_preferred(node, op);
        else if (step->kind == DV_DEVICE_ASK_ALLOCATE)
            answer_allocate(node, op);
        else
            answer_pre_start(node, op);
    }
    is_done = step->kind == DV_DEVICE_DONE;
    if (!is_done) {
        node->failure = step->failure;
        node->err = step->err;
    }
    dv_device_operation_free(op);
    return is_done;
}

struct dv_device_request node_request(struct node *node, const char *pod, const char *container,
                                      enum dv_device_container_kind kind, const char *limits)
{
    DV_VEC(struct dv_device_limit) v = {0};
    dv_str rest = dv_str_from_c(limits);
    dv_str limit;

    while (rest.n > 0 && dv_str_split(&rest, ' ', &limit)) {
        size_t equals = dv_str_find_char(limit, '=');
        struct dv_device_limit *one = dv_vec_add_in(&v, node->arena);

        one->resource = dv_str_slice(limit, 0, equals);
        if (!dv_str_to_i64(dv_str_slice(limit, equals + 1, limit.n), &one->amount))
            fail_msg("not a limit: %.*s", DV_FMT(limit));
    }
    return (struct dv_device_request){
        .pod_uid = dv_str_from_c(pod),
        .container = dv_str_from_c(container),
        .kind = kind,
        .limits = v.v,
        .n_limits = v.n,
    };
}

bool node_allocate(struct node *node, const char *pod, const char *container,
                   enum dv_device_container_kind kind, const char *limits)
{
    struct dv_device_request request = node_request(node, pod, container, kind, limits);

    dv_device_activate_pod(node->state, request.pod_uid);
    return run(node, dv_device_allocate(node->state, &request));
}

bool node_allocate_near(struct node *node, const char *pod, const char *limits, const char *nodes)
{
    struct dv_device_request request = node_request(node, pod, "c", DV_DEVICE_REGULAR, limits);
    dv_str rest = dv_str_from_c(nodes);
    dv_str id;

    dv_device_activate_pod(node->state, request.pod_uid);
    request.affinity.has_mask = nodes != NULL;
    while (rest.n > 0 && dv_str_split(&rest, ',', &id)) {
        uint32_t bit;

        if (!dv_str_to_u32(id, &bit))
            fail_msg("not a node: %.*s", DV_FMT(id));
        request.affinity.mask |= UINT64_C(1) << bit;
    }
    return run(node, dv_device_allocate(node->state, &request));
}

bool node_start(struct node *node, const char *pod, const char *container, const char *limits)
{
    struct dv_device_request request =
        node_request(node, pod, container, DV_DEVICE_REGULAR, limits);

    return run(node, dv_device_start(node->state, &request));
}

/* -- What there is -------------------------------------------------------------------------- */

static const struct dv_device_record *find_record(struct node *node, const char *pod,
                                                  const char *container, const char *resource)
{
    const struct dv_device_record *records;
    size_t n = dv_device_records_of_pod(node->state, dv_str_from_c(pod), node->arena, &records);

    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(records[i].container, dv_str_from_c(container)) &&
            dv_str_eq(records[i].resource, dv_str_from_c(resource)))
            return &records[i];
    return NULL;
}

const char *node_held(struct node *node, const char *pod, const char *container,
                      const char *resource)
{
    const struct dv_device_record *record = find_record(node, pod, container, resource);
    DV_VEC(dv_str) ids = {0};
    size_t n = 0;

    if (!record)
        return NULL;
    for (size_t i = 0; i < record->n_placed; i++)
        for (size_t k = 0; k < record->placed[i].n_ids; k++)
            *dv_vec_add_in(&ids, node->arena) = record->placed[i].ids[k];
    if (ids.n > 0)
        qsort(ids.v, ids.n, sizeof(ids.v[0]), str_cmp);
    for (size_t i = 0; i < ids.n; i++) /* one on several nodes is there for each */
        if (i == 0 || !dv_str_eq(ids.v[i - 1], ids.v[i]))
            ids.v[n++] = ids.v[i];
    return dv_str_to_c(join(node, ids.v, n, ' '), node->arena);
}

const char *node_placed(struct node *node, const char *pod, const char *container,
                        const char *resource)
{
    const struct dv_device_record *record = find_record(node, pod, container, resource);
    dv_str text = DV_STR("");

    if (!record)
        return NULL;
    for (size_t i = 0; i < record->n_placed; i++)
        text =
            dv_str_printf(node->arena, "%.*s%s%lld:%.*s", DV_FMT(text), i > 0 ? " " : "",
                          (long long)record->placed[i].node,
                          DV_FMT(join(node, record->placed[i].ids, record->placed[i].n_ids, ',')));
    return dv_str_to_c(text, node->arena);
}

const char *node_capacity(struct node *node, const char *resource)
{
    struct dv_device_capacities c;

    dv_device_capacity(node->state, node->now_ns, node->arena, &c);
    for (size_t i = 0; i < c.n; i++)
        if (dv_str_eq(c.v[i].resource, dv_str_from_c(resource)))
            return dv_str_to_c(
                dv_str_printf(node->arena, "%zu/%zu", c.v[i].capacity, c.v[i].allocatable),
                node->arena);
    for (size_t i = 0; i < c.n_removed; i++)
        if (dv_str_eq(c.removed[i], dv_str_from_c(resource)))
            return "removed";
    return "-";
}

struct dv_device_resource_info node_info(struct node *node, const char *resource)
{
    struct dv_device_resource_info info = {0};

    (void)dv_device_find(node->state, dv_str_from_c(resource), &info);
    return info;
}

void node_restart(struct node *node)
{
    struct dv_device_state *old = node->state;
    const struct dv_row_change *writes;
    size_t n = dv_device_take_changes(old, node->arena, &writes);
    struct dv_err err;

    node->state = dv_device_state_new(NULL);
    for (size_t i = 0; i < n; i++)
        if (writes[i].value.n > 0)
            assert_ok(
                dv_device_load(node->state, writes[i].key, writes[i].value, node->now_ns, &err),
                &err);
    dv_device_state_free(old);
}
