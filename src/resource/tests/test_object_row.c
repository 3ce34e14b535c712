#include "test_values.h"

#include <string.h>

#include "resource/codec/pack_fields.h"
#include "resource/object_pool.h"
#include "resource/select.h"

/* Objects with what rows have to keep: each kind of value, empty and not, and unknown members. */
static const struct {
    enum dv_kind_id kind;
    const char *text;
} objects[] = {
    {DV_KIND_POD,
     "{\"metadata\":{\"name\":\"p\",\"namespace\":\"default\",\"resourceVersion\":\"7\","
     "\"creationTimestamp\":\"2024-01-01T00:00:00Z\",\"labels\":{\"a\":\"\",\"b\":\"c\"},"
     "\"managedFields\":[{\"manager\":\"m\",\"operation\":\"Update\",\"apiVersion\":\"v1\","
     "\"time\":\"1970-01-01T00:00:00Z\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:metadata\":"
     "{\"f:labels\":{\".\":{},\"f:a\":{}}},\"f:spec\":{\"f:containers\":{\"k:{\\\"name\\\":"
     "\\\"c\\\"}\":{\".\":{},\"f:image\":{},\"f:unheard\":{\"v:\\\"x\\\"\":{}}}},\"f:nodeName\":{}"
     "}}}]},\"spec\":{\"volumes\":[{\"name\":\"v\",\"emptyDir\":{\"sizeLimit\":\"1Gi\"}}],"
     "\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":{\"limits\":{\"cpu\":\"100m\"}}"
     ","
     "\"livenessProbe\":{\"httpGet\":{\"path\":\"/\",\"port\":\"web\"},\"initialDelaySeconds\":5},"
     "\"readinessProbe\":{\"tcpSocket\":{\"port\":80}},\"future\":{\"x\":[1,null]}}],"
     "\"terminationGracePeriodSeconds\":0,\"securityContext\":{},\"enableServiceLinks\":false},"
     "\"status\":{\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"True\",\"lastProbeTime\":"
     "null,\"lastTransitionTime\":\"2024-01-01T00:00:00Z\"}]}}"                                                   },
    {DV_KIND_CLAIM,
     "{\"metadata\":{\"name\":\"c\",\"resourceVersion\":\"18446744073709551615\"},\"spec\":{"
     "\"devices\":{\"requests\":null,\"config\":[{\"opaque\":{\"driver\":\"d\",\"parameters\":{"
     "\"a\":[1,{}]}}}]}},"
     "\"status\":{\"allocation\":{\"devices\":{\"results\":[{\"request\":\"r\",\"driver\":\"d\","
     "\"pool\":\"p\",\"device\":\"x\",\"adminAccess\":false}]}},\"devices\":[{\"driver\":\"d\","
     "\"pool\":\"p\",\"device\":\"x\",\"conditions\":null,\"data\":{\"f:spec\":{}}}]}}"                           },
    {DV_KIND_SECRET,
     "{\"metadata\":{\"name\":\"s\",\"resourceVersion\":\"1\"},\"data\":{\"a\":\"\",\"b\":\"AAE=\"}"
     "}"                                                                                                          },
    {DV_KIND_LEASE,
     "{\"metadata\":{\"name\":\"l\",\"resourceVersion\":\"1\"},\"spec\":{\"holderIdentity\":\"\","
     "\"renewTime\":\"2024-01-01T00:00:00.000001Z\"}}"                                                            },
    {DV_KIND_RESOURCE_QUOTA,
     "{\"metadata\":{\"name\":\"q\",\"resourceVersion\":\"1\"},\"spec\":{\"hard\":{"
     "\"pods\":\"5\"},\"scopes\":[\"BestEffort\"],\"scopeSelector\":{\"matchExpressions\":[{"
     "\"scopeName\":\"PriorityClass\",\"operator\":\"In\",\"values\":[\"a\"]}]}},\"status\":{"
     "\"hard\":{\"pods\":\"5\"},\"used\":{\"pods\":\"1\"}}}"                                                      },
    {DV_KIND_SERVICE,
     "{\"metadata\":{\"name\":\"s\",\"resourceVersion\":\"1\"},\"spec\":{\"ports\":[{"
     "\"port\":80,\"targetPort\":\"web\"}],\"selector\":{\"a\":\"b\"},\"clusterIP\":"
     "\"10.96.0.2\",\"clusterIPs\":[\"10.96.0.2\"]},\"status\":{\"loadBalancer\":{}}}"                            },
    {DV_KIND_ENDPOINT_SLICE,
     "{\"metadata\":{\"name\":\"s\",\"resourceVersion\":\"1\"},\"addressType\":\"IPv4\","
     "\"endpoints\":[{\"addresses\":[\"10.0.0.1\"],\"conditions\":{\"ready\":false}}],"
     "\"ports\":[{\"name\":\"\",\"port\":0}]}"                                                                    },
    {DV_KIND_VALIDATING_POLICY,
     "{\"metadata\":{\"name\":\"p\",\"resourceVersion\":\"1\"},\"spec\":{\"paramKind\":{"
     "\"apiVersion\":\"v1\",\"kind\":\"X\"},\"matchConstraints\":{\"namespaceSelector\":{},"
     "\"resourceRules\":[{\"resourceNames\":[\"n\"],\"operations\":[\"*\"],\"apiGroups\":[\"\"],"
     "\"apiVersions\":[\"v1\"],\"resources\":[\"pods\"],\"scope\":\"*\"}],\"matchPolicy\":"
     "\"Exact\"}"
     ",\"validations\":[{\"expression\":\"true\",\"message\":\"m\",\"reason\":\"Invalid\","
     "\"messageExpression\":\"x\"}],\"failurePolicy\":\"Fail\",\"auditAnnotations\":[{\"key\":"
     "\"k\","
     "\"valueExpression\":\"v\"}],\"matchConditions\":[{\"name\":\"c\",\"expression\":\"true\"}],"
     "\"variables\":[{\"name\":\"v\",\"expression\":\"1\"}]},\"status\":{\"observedGeneration\":1,"
     "\"typeChecking\":{\"expressionWarnings\":[{\"fieldRef\":\"f\",\"warning\":\"w\"}]}}}"                       },
    {DV_KIND_VALIDATING_POLICY_BINDING,
     "{\"metadata\":{\"name\":\"b\",\"resourceVersion\":\"1\"},\"spec\":{\"policyName\":\"p\","
     "\"paramRef\":{\"name\":\"a\",\"namespace\":\"ns\",\"parameterNotFoundAction\":\"Deny\"},"
     "\"validationActions\":[\"Deny\"]}}"                                                                         },
    {DV_KIND_VALIDATING_WEBHOOKS,
     "{\"metadata\":{\"name\":\"w\",\"resourceVersion\":\"1\"},\"webhooks\":[{\"name\":\"a.b.c\","
     "\"clientConfig\":{\"service\":{\"namespace\":\"n\",\"name\":\"s\",\"path\":\"/"
     "p\",\"port\":443},"
     "\"caBundle\":\"AAE=\"},\"rules\":[{\"operations\":[\"*\"],\"apiGroups\":[\"\"],"
     "\"apiVersions\":["
     "\"v1\"],\"resources\":[\"pods\"],\"scope\":\"*\"}],\"failurePolicy\":\"Fail\","
     "\"matchPolicy\":"
     "\"Exact\",\"namespaceSelector\":{},\"objectSelector\":{\"matchLabels\":{\"a\":\"b\"}},"
     "\"sideEffects\":\"None\",\"timeoutSeconds\":5,\"admissionReviewVersions\":[\"v1\"],"
     "\"matchConditions\":[{\"name\":\"c\",\"expression\":\"true\"}]}]}"                                          },
    {DV_KIND_MUTATING_WEBHOOKS,
     "{\"metadata\":{\"name\":\"w\",\"resourceVersion\":\"1\"},\"webhooks\":[{\"name\":\"a.b.c\","
     "\"clientConfig\":{\"url\":\"https://h/p\"},\"objectSelector\":{},\"sideEffects\":\"None\","
     "\"admissionReviewVersions\":[\"v1beta1\"],\"reinvocationPolicy\":\"IfNeeded\","
     "\"matchConditions\":[{\"name\":\"c\",\"expression\":\"true\"}]}]}"                                          },
    {DV_KIND_PRIORITY_CLASS,
     "{\"metadata\":{\"name\":\"p\",\"resourceVersion\":\"1\"},\"value\":-5,"
     "\"globalDefault\":true,\"description\":\"for what can "
     "wait\",\"preemptionPolicy\":\"Never\"}"                                                                     },
    {DV_KIND_RUNTIME_CLASS,
     "{\"metadata\":{\"name\":\"r\",\"resourceVersion\":\"1\"},\"handler\":\"runc\","
     "\"overhead\":{\"podFixed\":{\"cpu\":\"250m\"}},\"scheduling\":{\"nodeSelector\":{"
     "\"a\":\"b\"},\"tolerations\":[{\"key\":\"k\",\"operator\":\"Exists\"}]}}"                                   },
    {DV_KIND_CLUSTER_ROLE,
     "{\"metadata\":{\"name\":\"r:x\",\"resourceVersion\":\"1\"},\"rules\":[{\"verbs\":[\"*\"],"
     "\"apiGroups\":[\"\"],\"resources\":[\"pods/log\"],\"resourceNames\":[\"p\"]},{\"verbs\":["
     "\"get\"],\"nonResourceURLs\":[\"/x/*\"]}],\"aggregationRule\":{\"clusterRoleSelectors\":[{"
     "\"matchLabels\":{\"a\":\"b\"}}]}}"                                                                          },
    {DV_KIND_ROLE,                      "{\"metadata\":{\"name\":\"r\",\"resourceVersion\":\"1\"},\"rules\":null}"},
    {DV_KIND_ROLE_BINDING,
     "{\"metadata\":{\"name\":\"b\",\"resourceVersion\":\"1\"},\"subjects\":[{\"kind\":"
     "\"ServiceAccount\",\"name\":\"s\",\"namespace\":\"n\"},{\"kind\":\"User\",\"apiGroup\":"
     "\"rbac.authorization.k8s.io\",\"name\":\"u\"}],\"roleRef\":{\"apiGroup\":"
     "\"rbac.authorization.k8s.io\",\"kind\":\"Role\",\"name\":\"r\"}}"                                           },
    {DV_KIND_SLICE,
     "{\"metadata\":{\"name\":\"s\",\"resourceVersion\":\"1\"},\"spec\":{\"driver\":\"d\",\"pool\":"
     "{"
     "\"name\":\"p\",\"generation\":-1,\"resourceSliceCount\":1},\"devices\":[{\"name\":\"a\","
     "\"attributes\":{\"b\":{\"bool\":false},\"i\":{\"int\":0},\"s\":{\"string\":\"\"}}},{\"name\":"
     "\"\"}]}}"                                                                                                   },
    {DV_KIND_EVENT,
     "{\"metadata\":{\"name\":\"e\",\"resourceVersion\":\"1\"},\"involvedObject\":{},\"source\":{},"
     "\"firstTimestamp\":null,\"lastTimestamp\":null,\"eventTime\":null,\"reportingComponent\":"
     "\"\","
     "\"reportingInstance\":\"\"}"                                                                                },
};

static struct dv_object *object_of(enum dv_kind_id id, const char *text, struct dv_arena *arena)
{
    const struct dv_kind *kind = dv_kind(id);
    void *value = new_value(kind->versions[0].message, arena);
    struct dv_err err;

    assert_ok(dv_decode_row(kind, dv_str_from_c(text), arena, value, &err), &err);
    return dv_object_new(kind, value);
}

static dv_str row_of(const struct dv_object *object, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, SIZE_MAX);
    dv_encode_row(object, &buf);
    return dv_str_copy(dv_buf_str(&buf), arena);
}

static void a_row_is_read_as_it_was_written(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(objects); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        struct dv_object *object = object_of(objects[i].kind, objects[i].text, arena);
        const struct dv_message *message = object->kind->versions[0].message;
        dv_str row = row_of(object, arena);
        void *again = new_value(message, arena);
        struct dv_object *loaded;
        struct dv_err err;

        assert_str(as_json(message, object->value, arena), objects[i].text);
        assert_true(row.n < strlen(objects[i].text) * 3 / 4);
        assert_ok(dv_decode_row(object->kind, row, arena, again, &err), &err);
        assert_str(as_json(message, again, arena), objects[i].text);
        loaded = dv_object_from_row(object->kind, row, arena, &err);
        assert_ok(loaded, &err);
        assert_str(as_json(message, loaded->value, arena), objects[i].text);
        assert_int_equal(loaded->version, object->version);
        dv_object_unref(loaded);
        dv_object_unref(object);
    }
}

static void the_version_can_be_set_later(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_object *object = object_of(objects[0].kind, objects[0].text, arena);
    struct dv_api_pod *pod = DV_NEW(arena, struct dv_api_pod);
    DV_CLEANUP(dv_buf_fini) struct dv_buf row;
    struct dv_err err;

    (void)state;
    dv_buf_init(&row, SIZE_MAX);
    dv_encode_row(object, &row);
    dv_row_set_version(&row, 123456);
    assert_ok(dv_decode_row(object->kind, dv_buf_str(&row), arena, pod, &err), &err);
    assert_str(pod->metadata.resource_version, "123456");
    dv_object_unref(object);
}

static bool is_read(const struct dv_kind *kind, dv_str row, struct dv_arena *arena)
{
    struct dv_err err;
    struct dv_object *object = dv_object_from_row(kind, row, arena, &err);

    dv_object_unref(object);
    return object != NULL;
}

/* Every row that is cut off, and every byte that is another one, ends in an error or in a value. */
static void what_is_damaged_ends_in_an_error(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_object *object = object_of(objects[0].kind, objects[0].text, arena);
    dv_str row = row_of(object, arena);
    char *bytes = dv_arena_alloc(arena, row.n, 1);
    size_t n_failed = 0;

    (void)state;
    memcpy(bytes, row.p, row.n);
    for (size_t i = 0; i < row.n; i++) {
        n_failed += !is_read(object->kind, (dv_str){bytes, i}, arena);
        bytes[i] ^= (char)0xff;
        n_failed += !is_read(object->kind, (dv_str){bytes, row.n}, arena);
        bytes[i] = row.p[i];
    }
    assert_true(n_failed > row.n / 2);
    dv_object_unref(object);
}

static void fields_that_are_not_as_we_print_them_are_not_packed(void **state)
{
    static const char *const texts[] = {
        "",
        "{}",
        "{",
        "[]",
        "{\"f:spec\":{}",
        "{\"f:spec\":{} }",
        "{\"f:spec\": {}}",
        "{\"f:spec\":1}",
        "{\"f:spec\":{}}}",
        "{\"f:spec\":{},}",
        "{\"f:sp\\",
        "{\"f:sp",
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(texts); i++) {
        DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

        dv_buf_init(&buf, 1000);
        dv_buf_add_c(&buf, "before");
        assert_false(dv_fields_pack(&dv_message_pod, dv_str_from_c(texts[i]), &buf));
        assert_str(dv_buf_str(&buf), "before");
    }
}

static void packed_fields_are_small(void **state)
{
    const dv_str text = DV_STR("{\"f:spec\":{\"f:containers\":{\"k:{\\\"name\\\":\\\"c\\\"}\":{"
                               "\".\":{},\"f:image\":{}}},\"f:nodeName\":{}}}");
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf packed;
    struct dv_err err;
    dv_str member;

    (void)state;
    dv_buf_init(&packed, 1000);
    assert_true(dv_fields_pack(&dv_message_pod, text, &packed));
    assert_true(packed.n < text.n / 2);
    assert_ok(dv_fields_check(&dv_message_pod, dv_buf_str(&packed), &err), &err);
    member = dv_fields_member(dv_kind(DV_KIND_POD), dv_buf_str(&packed), arena);
    assert_true(dv_fields_is_packed(member));
    assert_false(dv_fields_is_packed(text));
    assert_true(dv_str_eq(dv_fields_text(member, arena), text));
    assert_true(dv_str_eq(dv_fields_text(text, arena), text));
    assert_false(dv_fields_check(&dv_message_pod, dv_str_slice(dv_buf_str(&packed), 0, 3), &err));
    assert_int_equal(err.code, DV_DATA_LOSS);
}

/* A key has what JSON for the API escapes, and is printed as it would be without being packed. */
static void packed_fields_are_printed_as_their_text(void **state)
{
    static const char *const texts[] = {
        "{\"f:metadata\":{\"f:labels\":{\".\":{},\"f:app\":{}}}}",
        "{\"f:metadata\":{\"f:labels\":{\"f:a<b&c\":{}}}}",
        "not packed: {\"f:spec\": {}}",
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(texts); i++) {
        struct dv_api_managed_fields_entry entry = {.fields_v1 = dv_str_from_c(texts[i])};
        struct dv_api_pod pod = {
            .metadata = {.managed_fields = &entry, .n_managed_fields = 1}
        };
        DV_CLEANUP(dv_buf_fini) struct dv_buf before;
        DV_CLEANUP(dv_buf_fini) struct dv_buf after;

        dv_buf_init(&before, 10000);
        dv_buf_init(&after, 10000);
        dv_encode_json_text(&dv_message_pod, &pod, NULL, DV_STR_NONE, &before);
        dv_encode_pb(&dv_message_pod, &pod, &before);
        dv_managed_fields_pack(dv_kind(DV_KIND_POD), &entry, 1, arena);
        assert_int_equal(dv_fields_is_packed(entry.fields_v1), i < 2);
        dv_encode_json_text(&dv_message_pod, &pod, NULL, DV_STR_NONE, &after);
        dv_encode_pb(&dv_message_pod, &pod, &after);
        assert_true(dv_str_eq(dv_buf_str(&before), dv_buf_str(&after)));
    }
}

/* ---- objects that are kept as rows ---- */

#define POD                                                                                        \
    "{\"metadata\":{\"name\":\"p\",\"namespace\":\"default\",\"uid\":\"u-1\","                     \
    "\"resourceVersion\":\"7\",\"labels\":{\"a\":\"\",\"b\":\"c\"},\"annotations\":{\"x/"          \
    "y\":\"\"},\"managedFields\":[{"                                                               \
    "\"manager\":\"m\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"fieldsType\":\"FieldsV1\"" \
    ",\"fieldsV1\":{\"f:spec\":{\"f:nodeName\":{}}}}]},\"spec\":{\"containers\":[{\"name\":\"c\"," \
    "\"image\":\"i\",\"resources\":{\"limits\":{\"cpu\":\"100m\",\"memory\":\"1Gi\"}},"            \
    "\"future\":{\"x\":[1,null]}}],\"nodeName\":\"n1\",\"hostNetwork\":true},\"status\":{"         \
    "\"phase\":\"Pending\",\"podIPs\":[{\"ip\":\"10.0.0.1\"}]}}"

static void *pod_value(const char *text, struct dv_arena *arena)
{
    const struct dv_kind *kind = dv_kind(DV_KIND_POD);
    void *value = new_value(kind->versions[0].message, arena);
    struct dv_err err;

    assert_ok(dv_decode_row(kind, dv_str_from_c(text), arena, value, &err), &err);
    return value;
}

static struct dv_object *add_pod(struct dv_object_pool *pool, struct dv_arena *arena)
{
    struct dv_object whole = {.kind = dv_kind(DV_KIND_POD), .version = 7};
    DV_CLEANUP(dv_buf_fini) struct dv_buf row;

    whole.value = whole.meta = pod_value(POD, arena);
    dv_buf_init(&row, SIZE_MAX);
    dv_encode_row(&whole, &row);
    return dv_object_pool_add(pool, whole.kind, whole.value, dv_buf_str(&row));
}

/* Only a reference by dv_object_keep is left. */
static void become_kept(struct dv_object *object)
{
    (void)dv_object_keep(object);
    dv_object_unref(object);
}

static void pack_all(struct dv_object_pool *pool)
{
    dv_object_pool_pack(pool, 0);
    dv_object_pool_pack(pool, 0);
}

static void assert_is_the_pod(const struct dv_object *object, struct dv_arena *arena)
{
    assert_str(as_json(object->kind->versions[0].message, object->value, arena), POD);
    assert_ptr_equal(object->meta, object->value);
}

static void what_nobody_uses_is_packed_and_comes_back_as_it_was(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_object_pool *pool = dv_object_pool_new(NULL, NULL);
    struct dv_object *object = add_pod(pool, arena);
    uint32_t size_bytes = object->size_bytes;

    (void)state;
    assert_is_the_pod(object, arena);
    assert_int_equal(object->version, 7);
    pack_all(pool);
    assert_non_null(object->value); /* there is a reference by dv_object_ref */
    become_kept(object);
    assert_int_equal(dv_object_pool_n_idle(pool), 1);
    pack_all(pool);
    assert_int_equal(dv_object_pool_n_idle(pool), 0);
    assert_null(object->value);
    assert_null(object->meta);
    assert_int_equal(object->size_bytes, size_bytes);
    assert_true(dv_object_kept_bytes(object) < size_bytes / 2);

    assert_is_the_pod(dv_object_unpack(object), arena);
    dv_object_pool_pack(pool, 0);
    assert_non_null(object->value); /* it was unpacked since the last call */
    pack_all(pool);
    assert_null(object->value);

    assert_is_the_pod(dv_object_ref(object), arena);
    pack_all(pool);
    assert_non_null(object->value);
    dv_object_unref(object);
    dv_object_unkeep(object);
    dv_object_pool_free(pool);
}

static void the_least_recently_used_are_packed_first(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_object_pool *pool = dv_object_pool_new(NULL, NULL);
    struct dv_object *pods[3];

    (void)state;
    for (size_t i = 0; i < DV_COUNT(pods); i++) {
        pods[i] = add_pod(pool, arena);
        become_kept(pods[i]);
    }
    (void)dv_object_unpack(pods[0]);
    dv_object_pool_pack(pool, 1);
    dv_object_pool_pack(pool, 1);
    assert_non_null(pods[0]->value);
    assert_null(pods[1]->value);
    assert_null(pods[2]->value);
    for (size_t i = 0; i < DV_COUNT(pods); i++)
        dv_object_unkeep(pods[i]);
    dv_object_pool_free(pool);
}

static void count(void *ctx)
{
    ++*(size_t *)ctx;
}

static void a_pool_tells_when_it_grows_and_goes_with_its_last_object(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    size_t n_told = 0;
    struct dv_object_pool *pool = dv_object_pool_new(count, &n_told);
    struct dv_object *object = add_pod(pool, arena);
    struct dv_object *unused = add_pod(pool, arena);

    (void)state;
    assert_int_equal(n_told, 0);
    (void)dv_object_keep(object);
    dv_object_unref(object);
    assert_int_equal(n_told, 1);
    dv_object_unref(unused);
    assert_int_equal(n_told, 1);
    dv_object_pool_free(pool);
    assert_is_the_pod(dv_object_unpack(object), arena);
    assert_int_equal(n_told, 1);
    dv_object_unkeep(object);
}

static void a_row_is_loaded_without_keeping_its_value(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    struct dv_object_pool *pool = dv_object_pool_new(NULL, NULL);
    struct dv_object *first = add_pod(pool, arena);
    const dv_str rows[] = {dv_object_row(first), DV_STR(POD)};

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) { /* that of the first layout, too */
        struct dv_err err;
        struct dv_object whole;
        struct dv_object *loaded = dv_object_pool_load(pool, first->kind, rows[i], scratch, &err);
        struct dv_object_names names;

        assert_ok(loaded, &err);
        assert_is_the_pod(loaded, arena);
        dv_object_forget_value(loaded);
        dv_arena_reset(scratch);
        names = dv_object_names(loaded);
        assert_str(names.namespace, "default");
        assert_str(names.name, "p");
        assert_str(names.uid, "u-1");
        assert_int_equal(loaded->version, 7);
        assert_true(loaded->size_bytes >= first->size_bytes);
        assert_is_the_pod(dv_object_read(loaded, scratch, &whole), arena);
        assert_null(loaded->value);
        assert_is_the_pod(dv_object_unpack(loaded), arena);
        dv_object_unkeep(loaded);
    }
    dv_object_unref(first);
    dv_object_pool_free(pool);
}

static void a_row_that_cannot_be_read_is_not_loaded(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_object_pool *pool = dv_object_pool_new(NULL, NULL);
    struct dv_object *object = add_pod(pool, arena);
    dv_str row = dv_object_row(object);
    size_t n_failed = 0;

    (void)state;
    for (size_t n = 0; n < row.n; n++) {
        struct dv_err err;
        struct dv_object *loaded =
            dv_object_pool_load(pool, object->kind, dv_str_slice(row, 0, n), arena, &err);

        n_failed += !loaded;
        if (loaded)
            dv_object_forget_value(loaded);
        dv_object_unkeep(loaded);
    }
    assert_true(n_failed > row.n / 2);
    dv_object_unref(object);
    dv_object_pool_free(pool);
}

static const struct {
    const char *labels;
    const char *fields;
    bool matches;
} selectors[] = {
    {"",           "",                                  true },
    {"a",          "",                                  true },
    {"a=,b in(c)", "",                                  true },
    {"!a",         "",                                  false},
    {"z",          "",                                  false},
    {"",           "metadata.name=p",                   true },
    {"",           "metadata.namespace=x",              false},
    {"b=c",        "spec.nodeName=n1",                  true },
    {"b=d",        "spec.nodeName=n1",                  false},
    {"",           "spec.nodeName!=n1",                 false},
    {"",           "status.phase=Pending,spec.host=n1", true },
    {"",           "spec.restartPolicy=",               true },
    {"",           "spec.hostNetwork=true",             true },
    {"",           "status.podIP=10.0.0.1",             true },
    {"",           "status.podIP=10.0.0.2",             false},
};

static void join(void *ctx, dv_str text)
{
    dv_buf_add(ctx, text);
    dv_buf_add_char(ctx, ' ');
}

static void texts_of_packed_objects_are_read_in_place(void **state)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf row;
    DV_CLEANUP(dv_buf_fini) struct dv_buf seen;
    struct dv_object_pool *pool = dv_object_pool_new(NULL, NULL);
    struct dv_api_device devices[] = {{.name = DV_STR("a")}, {.name = DV_STR("b")}};
    struct dv_api_resource_slice slice = {
        .metadata = {.name = DV_STR("s")           },
        .spec = { .driver = DV_STR("d"),
                     .pool = {.name = DV_STR("p")},
                     .devices = devices,
                     .n_devices = DV_COUNT(devices)}
    };
    const struct dv_object whole = {
        .kind = dv_kind(DV_KIND_SLICE), .meta = &slice.metadata, .value = &slice};
    struct dv_object *object;
    struct dv_object *unpooled = dv_object_new(whole.kind, &slice);

    (void)state;
    dv_buf_init(&row, 4096);
    dv_buf_init(&seen, 4096);
    dv_encode_row(&whole, &row);
    object = dv_object_pool_add(pool, whole.kind, &slice, dv_buf_str(&row));
    become_kept(object);
    pack_all(pool);
    assert_true(dv_object_each_text(object, DV_STR("spec.devices.name"), join, &seen));
    assert_true(dv_object_each_text(object, DV_STR("spec.pool.name"), join, &seen));
    assert_true(dv_object_each_text(object, DV_STR("spec.nodeName"), join, &seen));
    assert_str(dv_buf_str(&seen), "a b p ");
    assert_null(object->value);
    assert_false(dv_object_each_text(unpooled, DV_STR("spec.driver"), join, &seen));
    dv_object_unref(unpooled);
    dv_object_unkeep(object);
    dv_object_pool_free(pool);
}

static void selectors_say_the_same_of_packed_objects(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_object_pool *pool = dv_object_pool_new(NULL, NULL);
    struct dv_object *object = add_pod(pool, arena);

    (void)state;
    become_kept(object);
    for (size_t i = 0; i < DV_COUNT(selectors); i++) {
        struct dv_err err;
        const struct dv_label_selector *labels =
            dv_label_selector_parse(dv_str_from_c(selectors[i].labels), arena, &err);
        const struct dv_field_selector *fields = dv_field_selector_parse(
            object->kind, DV_STR(""), dv_str_from_c(selectors[i].fields), arena, &err);

        assert_ok(labels && fields, &err);
        (void)dv_object_unpack(object);
        assert_int_equal(dv_object_is_selected(object, labels, fields), selectors[i].matches);
        pack_all(pool);
        assert_null(object->value);
        if (dv_object_is_selected(object, labels, fields) != selectors[i].matches)
            fail_msg("%s %s: want %d", selectors[i].labels, selectors[i].fields,
                     selectors[i].matches);
    }
    pack_all(pool);
    for (size_t i = 0; i < 2; i++) { /* first packed, then not */
        assert_true(dv_object_has_annotation(object, DV_STR("x/y")));
        assert_false(dv_object_has_annotation(object, DV_STR("x")));
        (void)dv_object_unpack(object);
    }
    dv_object_unkeep(object);
    dv_object_pool_free(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_read_as_it_was_written),
        cmocka_unit_test(the_version_can_be_set_later),
        cmocka_unit_test(what_is_damaged_ends_in_an_error),
        cmocka_unit_test(fields_that_are_not_as_we_print_them_are_not_packed),
        cmocka_unit_test(packed_fields_are_small),
        cmocka_unit_test(packed_fields_are_printed_as_their_text),
        cmocka_unit_test(what_nobody_uses_is_packed_and_comes_back_as_it_was),
        cmocka_unit_test(the_least_recently_used_are_packed_first),
        cmocka_unit_test(a_pool_tells_when_it_grows_and_goes_with_its_last_object),
        cmocka_unit_test(a_row_is_loaded_without_keeping_its_value),
        cmocka_unit_test(a_row_that_cannot_be_read_is_not_loaded),
        cmocka_unit_test(selectors_say_the_same_of_packed_objects),
        cmocka_unit_test(texts_of_packed_objects_are_read_in_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
