/* cli_print.c - what verbs print: complaints, tables, ages, JSON, messages and their options. All
 * text from outside goes through base's visible.h. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "base/visible.h"
#include "cli/cli.h"
#include "pb/pb.h"
#include "json/json.h"
#include "json/jsonpath.h"

/* The most bytes that a terminal or a pipe gets. */
#define OUTPUT_BYTES_MAX (1u << 30)

/* Prints who complains: "davit: ", "davit get: ". */
static void print_name(const char *verb)
{
    bool has_colours = dv_cli_has_colours(STDERR_FILENO);

    (void)fprintf(stderr, "%sdavit%s%s:%s ", has_colours ? DV_COLOUR_TROUBLE : "", verb ? " " : "",
                  verb ? verb : "", has_colours ? DV_COLOUR_END : "");
}

enum dv_exit dv_cli_complain(const char *fmt, ...)
{
    va_list args;

    print_name(NULL);
    va_start(args, fmt);
    (void)vfprintf(stderr, fmt, args);
    va_end(args);
    (void)fputc('\n', stderr);
    return DV_EXIT_FAILED;
}

enum dv_exit dv_cli_complain_usage(const char *verb, const char *fmt, ...)
{
    va_list args;

    print_name(verb);
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

void dv_cli_table_init(const struct dv_cli *cli, struct dv_table *table, const char *const *headers,
                       size_t n_columns)
{
    *table = (struct dv_table){.arena = cli->arena, .n_given = n_columns};
    table->is_hidden = DV_NEW_ARRAY(cli->arena, bool, n_columns);
    for (size_t i = 0; i < n_columns; i++) {
        table->is_hidden[i] = headers[i][0] == '+' && cli->output != DV_OUTPUT_WIDE;
        table->n_columns += !table->is_hidden[i];
    }
    for (size_t i = 0; i < n_columns; i++)
        dv_table_add(table, headers[i] + (headers[i][0] == '+'));
}

void dv_table_add(struct dv_table *table, const char *cell)
{
    struct {
        const char **v;
        size_t n;
        size_t size;
    } cells = {table->cells, table->n_cells, table->size};

    if (table->is_hidden && table->is_hidden[table->at++ % table->n_given])
        return;
    if (!dv_str_is_visible(dv_str_from_c(cell)))
        cell = dv_cli_plain(dv_str_from_c(cell), table->arena);
    *dv_vec_add_in(&cells, table->arena) = cell[0] ? cell : "-";
    table->cells = cells.v;
    table->n_cells = cells.n;
    table->size = cells.size;
}

void dv_table_restart(struct dv_table *table)
{
    table->n_cells = table->n_columns;
}

/* `width` 0: the last of its row, which is not padded. */
static void print_cell(const char *cell, const char *colour, size_t width, struct dv_buf *buf)
{
    int padding = width > strlen(cell) ? (int)(width - strlen(cell)) : 0;

    dv_buf_printf(buf, "%s%s%s%*s", colour, cell, colour[0] ? DV_COLOUR_END : "", padding, "");
    dv_buf_add_c(buf, width > 0 ? "   " : "\n");
}

static void print_rows(struct dv_table *table, size_t first, unsigned indent, bool has_colours,
                       struct dv_buf *buf)
{
    if (!table->widths)
        table->widths = DV_NEW_ARRAY(table->arena, size_t, table->n_columns);
    for (size_t i = first; i < table->n_cells; i++) {
        size_t *width = &table->widths[i % table->n_columns];

        *width = dv_size_max(*width, strlen(table->cells[i]));
    }
    for (size_t i = first; i < table->n_cells; i++) {
        size_t column = i % table->n_columns;
        const char *colour = "";

        if (has_colours)
            colour = i < table->n_columns ? DV_COLOUR_HEADER : dv_cli_colour_of(table->cells[i]);
        if (column == 0)
            dv_buf_printf(buf, "%*s", (int)indent, "");
        print_cell(table->cells[i], colour,
                   column + 1 < table->n_columns ? table->widths[column] : 0, buf);
    }
}

void dv_table_print_to(struct dv_table *table, bool has_headers, unsigned indent,
                       struct dv_buf *buf)
{
    print_rows(table, has_headers ? 0 : table->n_columns, indent, false, buf);
}

void dv_table_print(struct dv_table *table, bool has_headers)
{
    struct dv_buf buf;

    dv_buf_init(&buf, OUTPUT_BYTES_MAX);
    print_rows(table, has_headers ? 0 : table->n_columns, 0, dv_cli_has_colours(STDOUT_FILENO),
               &buf);
    (void)fputs(dv_buf_c(&buf), stdout);
    dv_buf_fini(&buf);
}

static void print_names(const struct dv_table *table, size_t n_names)
{
    for (size_t i = table->n_columns; i < table->n_cells; i += table->n_columns)
        for (size_t k = 0; k < n_names; k++)
            (void)printf("%s%s", table->cells[i + k], k + 1 < n_names ? "/" : "\n");
}

void dv_cli_print_table(const struct dv_cli *cli, struct dv_table *table, size_t n_names,
                        const char *empty)
{
    if (table->n_cells <= table->n_columns)
        (void)fprintf(stderr, "%s\n", empty);
    else if (cli->output == DV_OUTPUT_NAME)
        print_names(table, n_names);
    else
        dv_table_print(table, cli->has_headers);
}

bool dv_cli_is_table(const struct dv_cli *cli)
{
    return cli->output == DV_OUTPUT_TABLE || cli->output == DV_OUTPUT_WIDE ||
           cli->output == DV_OUTPUT_NAME;
}

const char *dv_cli_plain(dv_str text, struct dv_arena *arena)
{
    char *copy = DV_NEW_ARRAY(arena, char, text.n + 1);

    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];

        copy[i] = (char)(c == '\n' || c == '\r' || c == '\t' ? ' ' : c);
    }
    return dv_str_to_c(dv_str_visible((dv_str){copy, text.n}, arena), arena);
}

const char *dv_cli_age_at(int64_t since_ms, int64_t now_ms, struct dv_arena *arena)
{
    int64_t s = since_ms < now_ms ? (now_ms - since_ms) / 1000 : 0;
    dv_str text;

    if (s < 120)
        text = dv_str_printf(arena, "%" PRId64 "s", s);
    else if (s < 7200)
        text = dv_str_printf(arena, "%" PRId64 "m", s / 60);
    else if (s < 48 * 3600)
        text = dv_str_printf(arena, "%" PRId64 "h%" PRId64 "m", s / 3600, s / 60 % 60);
    else
        text = dv_str_printf(arena, "%" PRId64 "d", s / 86400);
    return dv_str_to_c(text, arena);
}

const char *dv_cli_age(struct dv_cli *cli, int64_t since_ms)
{
    int64_t now_ms = (int64_t)(dv_clock_wall_ns(dv_clock_real()) / 1000000);

    return dv_cli_age_at(since_ms, now_ms, cli->arena);
}

const char *dv_cli_until(struct dv_cli *cli, int64_t at_ms)
{
    int64_t left_ms = at_ms - (int64_t)(dv_clock_wall_ns(dv_clock_real()) / 1000000);

    if (at_ms == 0)
        return "";
    if (left_ms <= 0)
        return "now";
    return dv_str_to_c(dv_str_printf(cli->arena, "in %" PRId64 ".%01" PRId64 " s", left_ms / 1000,
                                     left_ms % 1000 / 100),
                       cli->arena);
}

/* ---- documents ---- */

void dv_cli_print_json(const struct dv_cli *cli, const struct dv_json *node,
                       const struct dv_json_style *style)
{
    struct dv_buf buf;

    dv_buf_init(&buf, OUTPUT_BYTES_MAX);
    if (cli->output == DV_OUTPUT_YAML) {
        dv_yaml_print(node, style, &buf);
    } else if (cli->output == DV_OUTPUT_JSONPATH) {
        struct dv_err err;

        if (!dv_jsonpath_print(cli->template, node, cli->arena, &buf, &err))
            (void)dv_cli_complain("%s", err.msg);
    } else {
        dv_json_print(node, style, &buf);
        dv_buf_add_char(&buf, '\n');
    }
    (void)fputs(dv_buf_c(&buf), stdout);
    (void)fflush(stdout); /* a stream is read as it comes */
    dv_buf_fini(&buf);
}

void dv_cli_print_message(struct dv_cli *cli, const struct ProtobufCMessage *message)
{
    const struct dv_json_style style = {.indent = 4};
    const struct dv_json_opts opts = {.bytes_max = OUTPUT_BYTES_MAX, .nodes_max = SIZE_MAX};
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    const struct dv_json *node;
    struct dv_err err;

    dv_buf_init(&text, OUTPUT_BYTES_MAX);
    dv_pb_print_json(message, &text);
    node = dv_json_parse(dv_buf_str(&text), &opts, cli->arena, &err);
    if (node)
        dv_cli_print_json(cli, node, &style);
    else
        (void)dv_cli_complain("%s", err.msg);
}

/* ---- help ---- */

static void print_option(const struct dv_cli_option *option, struct dv_buf *buf)
{
    char text[64];
    bool is_optional = option->value && option->value[0] == '[';

    (void)snprintf(text, sizeof(text), "%c%c%s--%s%s%s", option->letter ? '-' : ' ',
                   option->letter ? option->letter : ' ', option->letter ? ", " : "  ",
                   option->name, option->value && !is_optional ? " " : "",
                   option->value ? option->value : "");
    dv_buf_printf(buf, "  %-34s %s\n", text, option->help);
}

void dv_cli_print_options(const struct dv_cli_verb *verb, struct dv_buf *buf)
{
    static const struct dv_cli_verb any = {.options = ""};
    struct dv_cli_option option;

    for (size_t i = 0; dv_cli_option_get(verb ? verb : &any, i, &option); i++)
        print_option(&option, buf);
}
