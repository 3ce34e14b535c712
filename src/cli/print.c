#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/num.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "proto/davit_node_v1.pb-c.h" /* IWYU pragma: keep */
#include "json/json.h"

/* What a terminal or a pipe is given at most. */
#define OUTPUT_BYTES_MAX (1u << 30)

enum dv_exit dv_cli_complain(const char *fmt, ...)
{
    va_list args;

    (void)fputs("davit: ", stderr);
    va_start(args, fmt);
    (void)vfprintf(stderr, fmt, args);
    va_end(args);
    (void)fputc('\n', stderr);
    return DV_EXIT_FAILED;
}

enum dv_exit dv_cli_complain_usage(const char *verb, const char *fmt, ...)
{
    va_list args;

    (void)fprintf(stderr, "davit %s: ", verb);
    va_start(args, fmt);
    (void)vfprintf(stderr, fmt, args);
    va_end(args);
    (void)fprintf(stderr, "; see davit help %s\n", verb);
    return DV_EXIT_USAGE;
}

/* ---- tables ---- */

void dv_table_init(struct dv_table *table, struct dv_arena *arena, const char *const *headers,
                   size_t n_columns)
{
    *table = (struct dv_table){.arena = arena, .n_columns = n_columns};
    for (size_t i = 0; i < n_columns; i++)
        dv_table_add(table, headers[i]);
}

void dv_table_add(struct dv_table *table, const char *cell)
{
    struct {
        const char **v;
        size_t n;
        size_t size;
    } cells = {table->cells, table->n_cells, table->size};

    *dv_vec_add_in(&cells, table->arena) = cell[0] ? cell : "-";
    table->cells = cells.v;
    table->n_cells = cells.n;
    table->size = cells.size;
}

void dv_table_restart(struct dv_table *table)
{
    table->n_cells = table->n_columns;
}

void dv_table_print_to(struct dv_table *table, bool has_headers, unsigned indent,
                       struct dv_buf *buf)
{
    size_t first = has_headers ? 0 : table->n_columns;

    if (!table->widths)
        table->widths = DV_NEW_ARRAY(table->arena, size_t, table->n_columns);
    for (size_t i = first; i < table->n_cells; i++) {
        size_t *width = &table->widths[i % table->n_columns];

        *width = dv_size_max(*width, strlen(table->cells[i]));
    }
    for (size_t i = first; i < table->n_cells; i++) {
        if (i % table->n_columns == 0)
            dv_buf_printf(buf, "%*s", (int)indent, "");
        if ((i + 1) % table->n_columns == 0)
            dv_buf_printf(buf, "%s\n", table->cells[i]);
        else
            dv_buf_printf(buf, "%-*s   ", (int)table->widths[i % table->n_columns],
                          table->cells[i]);
    }
}

void dv_table_print(struct dv_table *table, bool has_headers)
{
    struct dv_buf buf;

    dv_buf_init(&buf, OUTPUT_BYTES_MAX);
    dv_table_print_to(table, has_headers, 0, &buf);
    (void)fputs(dv_buf_c(&buf), stdout);
    dv_buf_fini(&buf);
}

const char *dv_cli_plain(dv_str text, struct dv_arena *arena)
{
    char *copy = DV_NEW_ARRAY(arena, char, text.n + 1);

    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];

        copy[i] = (char)(c < ' ' || c == 0x7f ? ' ' : text.p[i]);
    }
    return copy;
}

const char *dv_cli_age(struct dv_cli *cli, int64_t since_ms)
{
    int64_t now_ms = (int64_t)(dv_clock_wall_ns(dv_clock_real()) / 1000000);
    int64_t s = since_ms < now_ms ? (now_ms - since_ms) / 1000 : 0;
    dv_str text;

    if (s < 120)
        text = dv_str_printf(cli->arena, "%" PRId64 "s", s);
    else if (s < 7200)
        text = dv_str_printf(cli->arena, "%" PRId64 "m", s / 60);
    else if (s < 48 * 3600)
        text = dv_str_printf(cli->arena, "%" PRId64 "h%" PRId64 "m", s / 3600, s / 60 % 60);
    else
        text = dv_str_printf(cli->arena, "%" PRId64 "d", s / 86400);
    return dv_str_to_c(text, cli->arena);
}

/* ---- messages as JSON ---- */

static struct dv_json *message_node(const ProtobufCMessage *message, struct dv_arena *arena);

static struct dv_json *value_node(const ProtobufCFieldDescriptor *field, const void *value,
                                  struct dv_arena *arena)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_BOOL:
        return dv_json_new_bool(*(const protobuf_c_boolean *)value, arena);
    case PROTOBUF_C_TYPE_STRING:
        return dv_json_new_str(dv_str_from_c(*(const char *const *)value), arena);
    case PROTOBUF_C_TYPE_UINT32:
        return dv_json_new_u64(*(const uint32_t *)value, arena);
    case PROTOBUF_C_TYPE_UINT64:
        return dv_json_new_u64(*(const uint64_t *)value, arena);
    case PROTOBUF_C_TYPE_INT32:
        return dv_json_new_i64(*(const int32_t *)value, arena);
    case PROTOBUF_C_TYPE_INT64:
        return dv_json_new_i64(*(const int64_t *)value, arena);
    case PROTOBUF_C_TYPE_MESSAGE:
        if (*(const ProtobufCMessage *const *)value)
            return message_node(*(const ProtobufCMessage *const *)value, arena);
        return NULL;
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_ENUM:
    case PROTOBUF_C_TYPE_BYTES:
        return NULL; /* davit.node.v1 has none of these in its answers */
    }
    return NULL;
}

static size_t value_bytes(const ProtobufCFieldDescriptor *field)
{
    switch ((int)field->type) {
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_INT64:
        return sizeof(uint64_t);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    default:
        return sizeof(uint32_t);
    }
}

static struct dv_json *message_node(const ProtobufCMessage *message, struct dv_arena *arena)
{
    struct dv_json *object = dv_json_new_object(arena);

    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        const char *at = (const char *)message + field->offset;
        struct dv_json *node;

        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            size_t n;
            const char *values;

            memcpy(&n, (const char *)message + field->quantifier_offset, sizeof(n));
            memcpy(&values, at, sizeof(values));
            node = dv_json_new_array(arena);
            for (size_t k = 0; k < n; k++)
                dv_json_append(node, value_node(field, values + k * value_bytes(field), arena));
        } else {
            node = value_node(field, at, arena);
        }
        if (node)
            dv_json_set(object, dv_str_from_c(field->name), node, arena);
    }
    return object;
}

void dv_cli_print_json(const struct dv_cli *cli, const struct dv_json *node,
                       const struct dv_json_style *style)
{
    struct dv_buf buf;

    dv_buf_init(&buf, OUTPUT_BYTES_MAX);
    if (cli->output == DV_OUTPUT_YAML) {
        dv_yaml_print(node, style, &buf);
    } else {
        dv_json_print(node, style, &buf);
        dv_buf_add_char(&buf, '\n');
    }
    (void)fputs(dv_buf_c(&buf), stdout);
    (void)fflush(stdout); /* a stream is read as it comes */
    dv_buf_fini(&buf);
}

void dv_cli_print_message(struct dv_cli *cli, const ProtobufCMessage *message)
{
    const struct dv_json_style style = {.indent = 4};

    dv_cli_print_json(cli, message_node(message, cli->arena), &style);
}
