/* value_print.c - values and errors for a person to read. */
#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "cel/value/cel_map.h"
#include "cel/value/cel_net.h"
#include "cel/value/cel_time.h"
#include "cel/value/cel_value.h"
#include "cel/value/number_text.h"
#include "cel/value/type.h"
#include "cel/value/url.h"
#include "number/number.h"

const char *dv_cel_error_prefix(const struct dv_cel_val *error)
{
    switch ((enum dv_cel_fault)error->fault) {
    case DV_CEL_FAULT_NO_KEY:
        return "no such key: ";
    case DV_CEL_FAULT_NO_OVERLOAD:
        return "no such overload: ";
    case DV_CEL_FAULT_COST:
        return "operation cancelled: actual cost limit exceeded";
    case DV_CEL_FAULT_CANCELLED:
        return "operation interrupted";
    case DV_CEL_FAULT_MEMORY:
        return "operation cancelled: memory limit exceeded";
    case DV_CEL_FAULT_INTERNAL:
        return "internal error: a list was expected";
    case DV_CEL_FAULT_TEXT:
        break;
    }
    return "";
}

static void print_list(const struct dv_cel_list *list, struct dv_buf *buf)
{
    dv_buf_add_char(buf, '[');
    for (uint32_t i = 0; i < list->n && !buf->is_over; i++) {
        if (i > 0)
            dv_buf_add_c(buf, ", ");
        dv_cel_val_print(&list->v[i], buf);
    }
    dv_buf_add_char(buf, ']');
}

static void print_map(const struct dv_cel_map *map, struct dv_buf *buf)
{
    dv_buf_add_char(buf, '{');
    for (uint32_t i = 0; i < map->n && !buf->is_over; i++) {
        if (i > 0)
            dv_buf_add_c(buf, ", ");
        dv_cel_val_print(&map->v[i].key, buf);
        dv_buf_add_c(buf, ": ");
        dv_cel_val_print(&map->v[i].value, buf);
    }
    dv_buf_add_char(buf, '}');
}

static void print_optional(const struct dv_cel_val *value, struct dv_buf *buf)
{
    dv_buf_add_c(buf, value ? "optional.of(" : "optional.none(");
    if (value)
        dv_cel_val_print(value, buf);
    dv_buf_add_char(buf, ')');
}

static void print_url(const struct dv_cel_url *url, struct dv_buf *buf)
{
    dv_buf_printf(buf, "%.*s%s%.*s%.*s%s%.*s", DV_FMT(url->scheme), url->has_host ? "://" : "",
                  DV_FMT(url->host), DV_FMT(url->path), url->query.n > 0 ? "?" : "",
                  DV_FMT(url->query));
}

void dv_cel_val_print_short(const struct dv_cel_val *val, char text[DV_CEL_NUMBER_BYTES])
{
    switch ((int)val->kind) {
    case DV_CEL_BOOL:
        (void)snprintf(text, DV_CEL_NUMBER_BYTES, "%s", val->b ? "true" : "false");
        break;
    case DV_CEL_INT:
        (void)snprintf(text, DV_CEL_NUMBER_BYTES, "%" PRId64, val->i);
        break;
    case DV_CEL_UINT:
        (void)snprintf(text, DV_CEL_NUMBER_BYTES, "%" PRIu64, val->u);
        break;
    case DV_CEL_DOUBLE:
        dv_cel_print_double(val->d, text);
        break;
    case DV_CEL_TIMESTAMP:
        dv_cel_time_print(val, text);
        break;
    case DV_CEL_DURATION:
        dv_cel_duration_print(val->i, text);
        break;
    case DV_CEL_IP:
        dv_cel_ip_print(val->ip, text);
        break;
    default:
        dv_cel_cidr_print(val->cidr, text);
        break;
    }
}

void dv_cel_val_print(const struct dv_cel_val *val, struct dv_buf *buf)
{
    char text[DV_CEL_NUMBER_BYTES];

    switch ((enum dv_cel_kind)val->kind) {
    case DV_CEL_ERROR:
        dv_buf_add_c(buf, dv_cel_error_prefix(val));
        dv_buf_add(buf, val->s);
        break;
    case DV_CEL_NULL:
        dv_buf_add_c(buf, "null");
        break;
    case DV_CEL_STRING:
    case DV_CEL_BYTES:
        dv_buf_add_json(buf, val->s);
        break;
    case DV_CEL_LIST:
        print_list(val->list, buf);
        break;
    case DV_CEL_MAP:
        print_map(val->map, buf);
        break;
    case DV_CEL_TYPE:
    case DV_CEL_FORMAT:
    case DV_CEL_AUTHORIZER:
    case DV_CEL_PATH_CHECK:
    case DV_CEL_GROUP_CHECK:
    case DV_CEL_RESOURCE_CHECK:
    case DV_CEL_DECISION:
    case DV_CEL_N_KINDS:
        dv_buf_add(buf, val->kind == DV_CEL_TYPE ? val->type->name : dv_cel_val_type_name(val));
        break;
    case DV_CEL_OPTIONAL:
        print_optional(val->optional, buf);
        break;
    case DV_CEL_QUANTITY:
        dv_quantity_print(val->quantity, buf);
        break;
    case DV_CEL_VERSION:
        dv_version_print(val->version, buf);
        break;
    case DV_CEL_URL:
        print_url(val->url, buf);
        break;
    case DV_CEL_BOOL:
    case DV_CEL_INT:
    case DV_CEL_UINT:
    case DV_CEL_DOUBLE:
    case DV_CEL_TIMESTAMP:
    case DV_CEL_DURATION:
    case DV_CEL_IP:
    case DV_CEL_CIDR:
        dv_cel_val_print_short(val, text);
        dv_buf_add_c(buf, text);
        break;
    }
}
