/* top_frame.c - the screen: a header, tabs, tables, a line of help. */
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/top/top.h"
#include "proto/davit_node_v1.pb-c.h"

#define LINE_BYTES_MAX (64u << 10)
#define REVERSE "\033[7m"
#define FAINT "\033[2m"
/* From this height on all sections are shown, the chosen one with most rows. */
#define TALL 36u
/* Rows of a section that is not the chosen one. */
#define SIDE_ROWS_MAX 5u
/* A column is not made narrower for the sake of others. */
#define COLUMN_MIN 8u
/* The columns between two cells. */
#define GAP 2u

struct drawing {
    const struct dv_top_data *data;
    struct dv_top_view *view;
    struct dv_arena *arena;
    struct dv_top_frame *frame;
    size_t size;
};

/* ---- text of a width ---- */

struct character {
    size_t n_bytes;
    size_t width;
};

/* Terminals agree on these, mostly. */
static size_t width_of(uint32_t code)
{
    static const struct {
        uint32_t first;
        uint32_t last;
        size_t width;
    } ranges[] = {
        {0x300,   0x36f,   0},
        {0x200b,  0x200f,  0},
        {0xfe00,  0xfe0f,  0},
        {0x1100,  0x115f,  2},
        {0x2e80,  0xa4cf,  2},
        {0xac00,  0xd7a3,  2},
        {0xf900,  0xfaff,  2},
        {0xfe30,  0xfe6f,  2},
        {0xff00,  0xff60,  2},
        {0x1f300, 0x1faff, 2},
        {0x20000, 0x3fffd, 2},
    };

    for (size_t i = 0; i < DV_COUNT(ranges); i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return ranges[i].width;
    return 1;
}

/* The first of a text that is not empty; what is not UTF-8 is a byte of one column. */
static struct character next_character(const char *text)
{
    unsigned char first = (unsigned char)text[0];
    size_t n = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
    uint32_t code = n == 1 ? first : first & (0xffu >> (n + 1));

    for (size_t i = 1; i < n; i++) {
        if (((unsigned char)text[i] & 0xc0) != 0x80)
            return (struct character){1, 1};
        code = code << 6 | ((unsigned char)text[i] & 0x3f);
    }
    return (struct character){n, width_of(code)};
}

static size_t text_width(const char *text)
{
    size_t width = 0;

    while (text[0]) {
        struct character c = next_character(text);

        width += c.width;
        text += c.n_bytes;
    }
    return width;
}

/* ---- lines ---- */

struct line {
    struct dv_buf buf;
    size_t used; /* columns */
    size_t width;
    bool has_colours;
};

static struct line begin_line(const struct drawing *drawing)
{
    struct line line = {.width = drawing->view->width, .has_colours = drawing->view->has_colours};

    dv_buf_init(&line.buf, LINE_BYTES_MAX);
    return line;
}

static void fill_to(struct line *line, size_t column)
{
    while (line->used < dv_size_min(column, line->width)) {
        dv_buf_add_char(&line->buf, ' ');
        line->used++;
    }
}

/* Puts at most `width` columns of the text; one that is cut ends with a '~'. */
static void put(struct line *line, const char *text, const char *colour, size_t width)
{
    bool is_coloured = line->has_colours && colour[0];
    bool is_cut;

    width = dv_size_min(width, line->width - line->used);
    is_cut = text_width(text) > width;
    if (width == 0)
        return;
    if (is_coloured)
        dv_buf_add_c(&line->buf, colour);
    width -= is_cut;
    while (text[0]) {
        struct character c = next_character(text);

        if (c.width > width)
            break;
        dv_buf_add(&line->buf, (dv_str){text, c.n_bytes});
        line->used += c.width;
        width -= c.width;
        text += c.n_bytes;
    }
    if (is_cut) {
        dv_buf_add_char(&line->buf, '~');
        line->used++;
    }
    if (is_coloured)
        dv_buf_add_c(&line->buf, DV_COLOUR_END);
}

static void end_line(struct drawing *drawing, struct line *line)
{
    struct dv_top_frame *frame = drawing->frame;
    dv_str text = dv_buf_str(&line->buf);

    while (!line->has_colours && text.n > 0 && text.p[text.n - 1] == ' ')
        text.n--;
    if (frame->n < drawing->size)
        frame->lines[frame->n++] = dv_str_copy(text, drawing->arena);
    dv_buf_fini(&line->buf);
}

static void add_line(struct drawing *drawing, const char *text, const char *colour)
{
    struct line line = begin_line(drawing);

    put(&line, text, colour, SIZE_MAX);
    end_line(drawing, &line);
}

/* ---- tables ---- */

/* Makes columns as wide as their widest cell; where that is too much, the widest columns
 * give way. */
static void find_widths(const struct dv_top_rows *rows, size_t width, size_t *widths)
{
    size_t total = 0;
    size_t last = rows->n_columns - 1;
    size_t n_giving = last > 0 ? last : 1;

    for (size_t k = 0; k < rows->n_columns; k++) {
        widths[k] = strlen(rows->headers[k]);
        for (size_t i = 0; i < rows->n; i++)
            if (!rows->v[i].is_group)
                widths[k] = dv_size_max(widths[k], text_width(rows->v[i].cells[k]));
        total += widths[k] + (k > 0 ? GAP : 0);
    }
    while (total > width) {
        size_t widest = 0;

        /* the last one says why, so the others give way to it until it has half of the line */
        for (size_t k = 1; k < n_giving; k++)
            if (widths[k] > widths[widest])
                widest = k;
        if (widths[widest] <= COLUMN_MIN || widths[last] >= width / 2)
            n_giving = rows->n_columns;
        if (widths[last] > widths[widest] && n_giving == rows->n_columns)
            widest = last;
        if (widths[widest] <= COLUMN_MIN)
            return; /* the last ones are cut */
        widths[widest]--;
        total--;
    }
}

static void draw_row(struct drawing *drawing, const struct dv_top_rows *rows,
                     const struct dv_top_row *row, const size_t *widths)
{
    struct line line = begin_line(drawing);
    size_t column = 0;

    if (row->is_group) {
        put(&line, row->cells[0], DV_COLOUR_HEADER, SIZE_MAX);
        fill_to(&line, line.used + GAP);
        put(&line, row->cells[1], FAINT, SIZE_MAX);
    }
    for (size_t k = 0; !row->is_group && k < rows->n_columns; k++) {
        fill_to(&line, column);
        put(&line, row->cells[k], dv_cli_colour_of(row->cells[k]), widths[k]);
        column += widths[k] + GAP;
    }
    end_line(drawing, &line);
}

static void draw_headers(struct drawing *drawing, const struct dv_top_rows *rows,
                         const size_t *widths)
{
    struct line line = begin_line(drawing);
    size_t column = 0;

    for (size_t k = 0; k < rows->n_columns; k++) {
        fill_to(&line, column);
        put(&line, rows->headers[k], FAINT, widths[k]);
        column += widths[k] + GAP;
    }
    end_line(drawing, &line);
}

/* Rows from where the section is scrolled to, on `height` lines with the headers. */
static void draw_table(struct drawing *drawing, enum dv_top_section section,
                       const struct dv_top_rows *rows, size_t height)
{
    struct dv_top_view *view = drawing->view;
    size_t widths[DV_TOP_COLUMNS_MAX];
    size_t n_shown = height > 0 ? dv_size_min(height - 1, rows->n) : 0;
    size_t end = drawing->frame->n + height;

    if (height == 0)
        return;
    if (view->scroll[section] > rows->n - n_shown)
        view->scroll[section] = rows->n - n_shown;
    if (rows->n == 0) {
        add_line(drawing, rows->empty, FAINT);
    } else {
        find_widths(rows, view->width, widths);
        draw_headers(drawing, rows, widths);
    }
    for (size_t i = 0; i < n_shown; i++)
        draw_row(drawing, rows, &rows->v[view->scroll[section] + i], widths);
    while (view->height > 0 && drawing->frame->n < end)
        add_line(drawing, "", "");
    if (section == view->section)
        view->page = n_shown;
}

/* ---- the rest of the screen ---- */

static void draw_header(struct drawing *drawing)
{
    const struct dv_top_data *data = drawing->data;
    const char *devices = dv_top_devices_text(data, drawing->arena);
    struct line line = begin_line(drawing);
    size_t right = text_width(devices);

    if (data->status) {
        put(&line, data->status->node_name, DV_COLOUR_HEADER, SIZE_MAX);
        put(&line,
            dv_str_to_c(dv_str_printf(drawing->arena, "  davitd %s, up %s", data->status->version,
                                      dv_cli_age_at(data->status->started_at_ms, data->now_ms,
                                                    drawing->arena)),
                        drawing->arena),
            "", SIZE_MAX);
    } else {
        put(&line, "davit top", DV_COLOUR_HEADER, SIZE_MAX);
    }
    if (data->trouble.n > 0) {
        put(&line, "  waiting for davitd", DV_COLOUR_TROUBLE, SIZE_MAX);
    } else if (data->status && line.used + right + GAP <= line.width) {
        fill_to(&line, drawing->view->height > 0 ? line.width - right : line.used + GAP);
        put(&line, devices, "", SIZE_MAX);
    }
    end_line(drawing, &line);
}

static void draw_tabs(struct drawing *drawing, const struct dv_top_rows *all)
{
    const struct dv_top_view *view = drawing->view;
    struct line line = begin_line(drawing);

    for (unsigned i = 0; i < DV_TOP_N_SECTIONS; i++) {
        bool is_chosen = i == view->section;
        bool is_marked = is_chosen && !view->has_colours;
        dv_str text = dv_str_printf(drawing->arena, "%s%u %s %zu%s", is_marked ? "[" : " ", i + 1,
                                    dv_top_section_name(i), all[i].n_items, is_marked ? "]" : " ");

        put(&line, dv_str_to_c(text, drawing->arena), is_chosen ? REVERSE : "", SIZE_MAX);
    }
    end_line(drawing, &line);
}

static void draw_footer(struct drawing *drawing, const struct dv_top_rows *rows)
{
    const struct dv_top_view *view = drawing->view;
    size_t first = view->scroll[view->section];
    dv_str text;

    if (drawing->data->trouble.n > 0)
        text = dv_str_from_c(dv_cli_plain(drawing->data->trouble, drawing->arena));
    else if (view->is_typing)
        text = dv_str_printf(drawing->arena, "/%s_", view->filter);
    else
        text = dv_str_printf(drawing->arena,
                             "%zu-%zu of %zu  q quit  Tab, 1-5 section  j/k scroll  / filter%s%s",
                             view->page > 0 ? first + 1 : 0, first + view->page, rows->n,
                             view->filter[0] ? ": " : "", view->filter);
    add_line(drawing, dv_str_to_c(text, drawing->arena),
             drawing->data->trouble.n > 0 ? DV_COLOUR_TROUBLE : FAINT);
}

static void draw_title(struct drawing *drawing, enum dv_top_section section)
{
    bool is_chosen = section == drawing->view->section;

    add_line(drawing, dv_top_section_name(section), is_chosen ? REVERSE : DV_COLOUR_HEADER);
}

/* Side by side, one over the other: a title and a table each. */
static void draw_all(struct drawing *drawing, const struct dv_top_rows *all, size_t height)
{
    size_t heights[DV_TOP_N_SECTIONS];
    size_t left = height;

    for (unsigned i = 0; i < DV_TOP_N_SECTIONS; i++) {
        heights[i] = 2 + dv_size_min(all[i].n, SIDE_ROWS_MAX); /* a title, and headers */
        if (i != drawing->view->section)
            left -= heights[i];
    }
    heights[drawing->view->section] = left;
    for (unsigned i = 0; i < DV_TOP_N_SECTIONS; i++) {
        draw_title(drawing, i);
        draw_table(drawing, i, &all[i], heights[i] - 1);
    }
}

/* Draws for a reader that is no terminal: everything, as long as it is. */
static void draw_text(struct drawing *drawing, const struct dv_top_rows *all)
{
    draw_header(drawing);
    if (drawing->data->trouble.n > 0)
        add_line(drawing, dv_cli_plain(drawing->data->trouble, drawing->arena), "");
    for (unsigned i = 0; i < DV_TOP_N_SECTIONS; i++) {
        add_line(drawing, "", "");
        draw_title(drawing, i);
        draw_table(drawing, i, &all[i], all[i].n + 1);
    }
}

void dv_top_draw(const struct dv_top_data *data, struct dv_top_view *view, struct dv_arena *arena,
                 struct dv_top_frame *frame)
{
    struct drawing drawing = {data, view, arena, frame, view->height};
    struct dv_top_rows all[DV_TOP_N_SECTIONS];

    for (unsigned i = 0; i < DV_TOP_N_SECTIONS; i++) {
        dv_top_rows_make(data, i, dv_str_from_c(view->filter), arena, &all[i]);
        drawing.size += view->height > 0 ? 0 : all[i].n + 4;
    }
    *frame = (struct dv_top_frame){.lines = DV_NEW_ARRAY(arena, dv_str, drawing.size + 1)};
    if (view->height == 0) {
        drawing.size++;
        draw_text(&drawing, all);
        return;
    }
    draw_header(&drawing);
    if (view->height >= 3)
        draw_tabs(&drawing, all);
    if (view->height >= TALL)
        draw_all(&drawing, all, view->height - 3);
    else if (view->height >= 3)
        draw_table(&drawing, view->section, &all[view->section], view->height - 3);
    if (view->height >= 2)
        draw_footer(&drawing, &all[view->section]);
}
