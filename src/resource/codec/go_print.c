/* go_print.c - messages as the reference's structs, by their field tables. */
#include "resource/go_print.h"

#include <stdint.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/err.h"
#include "resource/codec/layout.h"
#include "resource/codec/pack_fields.h"
#include "resource/resource.h"
#include "json/json.h"

#define TEXT_BYTES_MAX (64u * 1024u * 1024u)
/* The length of a Go name: the longest in the schema has half as many bytes. */
#define NAME_BYTES_MAX 96u

struct name {
    const char *json;
    const char *go;
};

/* Words that Go writes in capitals throughout. Other words only begin with one. */
static const struct name capitals[] = {
    {"apiVersion",           "APIVersion"          },
    {"awsElasticBlockStore", "AWSElasticBlockStore"},
    {"cel",                  "CEL"                 },
    {"cephfs",               "CephFS"              },
    {"csi",                  "CSI"                 },
    {"dnsConfig",            "DNSConfig"           },
    {"dnsPolicy",            "DNSPolicy"           },
    {"fc",                   "FC"                  },
    {"fsGroup",              "FSGroup"             },
    {"fsGroupChangePolicy",  "FSGroupChangePolicy" },
    {"fsType",               "FSType"              },
    {"gcePersistentDisk",    "GCEPersistentDisk"   },
    {"grpc",                 "GRPC"                },
    {"httpGet",              "HTTPGet"             },
    {"httpHeaders",          "HTTPHeaders"         },
    {"ip",                   "IP"                  },
    {"ips",                  "IPs"                 },
    {"iscsi",                "ISCSI"               },
    {"nfs",                  "NFS"                 },
    {"os",                   "OS"                  },
    {"rbd",                  "RBD"                 },
    {"seLinuxChangePolicy",  "SELinuxChangePolicy" },
    {"seLinuxOptions",       "SELinuxOptions"      },
    {"tcpSocket",            "TCPSocket"           },
    {"tty",                  "TTY"                 },
    {"uid",                  "UID"                 },
};

static const struct name attribute_names[] = {
    {"int",      "IntValue"     },
    {"bool",     "BoolValue"    },
    {"string",   "StringValue"  },
    {"version",  "VersionValue" },
    {"ints",     "IntValues"    },
    {"bools",    "BoolValues"   },
    {"strings",  "StringValues" },
    {"versions", "VersionValues"},
};

static const char *find_name(const struct name *names, size_t n, dv_str json)
{
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(dv_str_from_c(names[i].json), json))
            return names[i].go;
    return NULL;
}

static dv_str go_name(const struct dv_message *message, const struct dv_field *field, char *text)
{
    const char *found = message == &dv_message_device_attribute
                            ? find_name(attribute_names, DV_COUNT(attribute_names), field->name)
                            : find_name(capitals, DV_COUNT(capitals), field->name);

    if (found)
        return dv_str_from_c(found);
    for (size_t i = 0; i < field->name.n && i < NAME_BYTES_MAX; i++)
        text[i] = field->name.p[i];
    if (text[0] >= 'a' && text[0] <= 'z')
        text[0] = (char)(text[0] - 'a' + 'A');
    return (dv_str){text, field->name.n < NAME_BYTES_MAX ? field->name.n : NAME_BYTES_MAX};
}

/* Whether a struct has the names of JSON in the reference's internal types too, and leaves out what
 * is empty. */
static bool has_json_names(const struct dv_message *message)
{
    return dv_str_eq(message->package, DV_STR("io.k8s.apimachinery.pkg.apis.meta.v1"));
}

static struct dv_json *buf_text(const struct dv_buf *buf, struct dv_arena *arena)
{
    return dv_json_new_str(dv_buf_str(buf), arena);
}

static struct dv_json *raw_value(dv_str raw, struct dv_arena *arena)
{
    struct dv_err err;
    dv_str text = dv_fields_text(raw, arena);
    struct dv_json *json = text.n > 0 ? dv_json_parse(text, NULL, arena, &err) : NULL;

    return json ? json : dv_json_new_null(arena);
}

static struct dv_json *time_value(const struct dv_time *time, bool with_micros,
                                  struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    if (!time->is_set)
        return dv_json_new_null(arena);
    dv_api_time_print(*time, with_micros, &buf);
    return buf_text(&buf, arena);
}

static struct dv_json *quantity_value(const struct dv_quantity *quantity, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_quantity_print(quantity, &buf);
    return buf_text(&buf, arena);
}

static struct dv_json *bytes_value(dv_str bytes, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_base64_encode(bytes, &buf);
    return buf_text(&buf, arena);
}

static struct dv_json *strings_value(const struct dv_strs *strings, struct dv_arena *arena)
{
    struct dv_json *array = dv_json_new_array(arena);

    for (size_t i = 0; i < strings->n; i++)
        dv_json_append(array, dv_json_new_str(strings->v[i], arena));
    return array;
}

static struct dv_json *one_value(const struct dv_field *field, const void *value,
                                 struct dv_arena *arena)
{
    const struct dv_int_or_str *either = value;

    switch ((enum dv_type)field->type) {
    case DV_TYPE_STRING:
        return dv_json_new_str(*(const dv_str *)value, arena);
    case DV_TYPE_BOOL:
        return dv_json_new_bool(*(const bool *)value, arena);
    case DV_TYPE_INT32:
    case DV_TYPE_INT64:
        return dv_json_new_i64(*(const int64_t *)value, arena);
    case DV_TYPE_TIME:
    case DV_TYPE_MICROTIME:
        return time_value(value, field->type == DV_TYPE_MICROTIME, arena);
    case DV_TYPE_QUANTITY:
        return quantity_value(value, arena);
    case DV_TYPE_BYTES:
        return bytes_value(*(const dv_str *)value, arena);
    case DV_TYPE_RAW:
        return raw_value(*(const dv_str *)value, arena);
    case DV_TYPE_INT_OR_STR:
        return either->is_text ? dv_json_new_str(either->text, arena)
                               : dv_json_new_i64(either->number, arena);
    case DV_TYPE_STRINGS:
        return strings_value(value, arena);
    case DV_TYPE_MESSAGE:
        break;
    }
    return dv_go_value(field->message, value, arena);
}

static struct dv_json *items_value(const struct dv_field *field, struct dv_items items,
                                   struct dv_arena *arena)
{
    struct dv_json *json;

    if (!items.first)
        return dv_json_new_null(arena);
    json = field->shape == DV_SHAPE_MAP ? dv_json_new_object(arena) : dv_json_new_array(arena);
    for (size_t i = 0; i < items.n; i++) {
        const char *item = items.first + i * items.size;
        struct dv_json *value = one_value(field, item + items.value_offset, arena);

        if (field->shape == DV_SHAPE_MAP)
            dv_json_set(json, *(const dv_str *)(const void *)item, value, arena);
        else
            dv_json_append(json, value);
    }
    return json;
}

static struct dv_json *field_value(const struct dv_field *field, const char *home,
                                   struct dv_arena *arena)
{
    const void *value;

    if (dv_is_container(field))
        return items_value(field, dv_field_items(field, home), arena);
    value = dv_field_value(field, home);
    return value ? one_value(field, value, arena) : dv_json_new_null(arena);
}

static bool is_left_out(const struct dv_message *message, const struct dv_field *field,
                        const char *home)
{
    const void *value;

    if (!has_json_names(message) || (field->flags & DV_FIELD_ALWAYS) != 0)
        return false;
    if (dv_is_container(field))
        return dv_field_items(field, home).n == 0;
    value = dv_field_value(field, home);
    return !value || (field->shape == DV_SHAPE_ONE && dv_value_is_zero(field, value));
}

static void add_fields(const struct dv_message *message, const char *value, struct dv_json *object,
                       struct dv_arena *arena);

/* Whether the field is embedded: metadata is a part of the struct around it in Go. */
static bool is_embedded(const struct dv_field *field)
{
    return field->shape == DV_SHAPE_INLINE || field->message == &dv_message_object_meta;
}

static void add_field(const struct dv_message *message, const struct dv_field *field,
                      const char *value, struct dv_json *object, struct dv_arena *arena)
{
    char text[NAME_BYTES_MAX] = "";

    if (is_embedded(field)) {
        add_fields(field->message, value + field->offset, object, arena);
        return;
    }
    if (is_left_out(message, field, value))
        return;
    dv_json_set(object, has_json_names(message) ? field->name : go_name(message, field, text),
                field_value(field, value, arena), arena);
}

/* The reference's internal pod spec has another order, and keeps what containers share with the
 * host in its security context. */
static const char *const pod_spec_order[] = {
    "volumes",
    "initContainers",
    "containers",
    "ephemeralContainers",
    "restartPolicy",
    "terminationGracePeriodSeconds",
    "activeDeadlineSeconds",
    "dnsPolicy",
    "nodeSelector",
    "serviceAccountName",
    "automountServiceAccountToken",
    "nodeName",
    "securityContext",
    "imagePullSecrets",
    "hostname",
    "subdomain",
    "setHostnameAsFQDN",
    "affinity",
    "schedulerName",
    "tolerations",
    "hostAliases",
    "priorityClassName",
    "priority",
    "preemptionPolicy",
    "dnsConfig",
    "readinessGates",
    "runtimeClassName",
    "overhead",
    "enableServiceLinks",
    "topologySpreadConstraints",
    "os",
    "schedulingGates",
    "resourceClaims",
    "resources",
    "hostnameOverride",
    "schedulingGroup",
};
static const char *const pod_host_order[] = {
    "hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers",
};
static const char *const pod_security_order[] = {
    "seLinuxOptions",
    "windowsOptions",
    "runAsUser",
    "runAsGroup",
    "runAsNonRoot",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "seccompProfile",
    "appArmorProfile",
    "seLinuxChangePolicy",
};

static const struct dv_field *find_field(const struct dv_message *message, const char *name)
{
    for (size_t i = 0; i < message->n_fields; i++)
        if (dv_str_eq(message->fields[i].name, dv_str_from_c(name)))
            return &message->fields[i];
    return NULL;
}

static void add_security_context(const struct dv_api_pod_spec *spec, struct dv_json *object,
                                 struct dv_arena *arena)
{
    struct dv_json *context = dv_json_new_object(arena);

    if (!spec->security_context) {
        dv_json_set(object, DV_STR("SecurityContext"), dv_json_new_null(arena), arena);
        return;
    }
    for (size_t i = 0; i < DV_COUNT(pod_host_order); i++)
        add_field(&dv_message_pod_spec, find_field(&dv_message_pod_spec, pod_host_order[i]),
                  (const char *)spec, context, arena);
    for (size_t i = 0; i < DV_COUNT(pod_security_order); i++)
        add_field(&dv_message_pod_security_context,
                  find_field(&dv_message_pod_security_context, pod_security_order[i]),
                  (const char *)spec->security_context, context, arena);
    dv_json_set(object, DV_STR("SecurityContext"), context, arena);
}

static void add_pod_spec(const struct dv_api_pod_spec *spec, struct dv_json *object,
                         struct dv_arena *arena)
{
    for (size_t i = 0; i < DV_COUNT(pod_spec_order); i++) {
        const struct dv_field *field = find_field(&dv_message_pod_spec, pod_spec_order[i]);

        if (field && field->message == &dv_message_pod_security_context)
            add_security_context(spec, object, arena);
        else if (field)
            add_field(&dv_message_pod_spec, field, (const char *)spec, object, arena);
    }
}

static void add_fields(const struct dv_message *message, const char *value, struct dv_json *object,
                       struct dv_arena *arena)
{
    if (message == &dv_message_pod_spec) {
        add_pod_spec((const struct dv_api_pod_spec *)(const void *)value, object, arena);
        return;
    }
    for (size_t i = 0; i < message->n_fields; i++)
        add_field(message, &message->fields[i], value, object, arena);
}

struct dv_json *dv_go_value(const struct dv_message *message, const void *value,
                            struct dv_arena *arena)
{
    struct dv_json *object = dv_json_new_object(arena);

    add_fields(message, value, object, arena);
    return object;
}

struct dv_json *dv_go_list(const struct dv_message *message, const void *values, size_t n,
                           struct dv_arena *arena)
{
    struct dv_json *array = dv_json_new_array(arena);

    if (!values)
        return dv_json_new_null(arena);
    for (size_t i = 0; i < n; i++)
        dv_json_append(array,
                       dv_go_value(message, (const char *)values + i * message->size, arena));
    return array;
}
