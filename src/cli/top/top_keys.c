/* top_keys.c - what keys do. */
#include <string.h>

#include "base/defs.h"
#include "base/str.h"
#include "cli/top/top.h"

#define ESCAPE '\033'

enum action {
    QUIT,
    NEXT,
    PREVIOUS,
    UP,
    DOWN,
    PAGE_UP,
    PAGE_DOWN,
    FIRST,
    LAST,
    FILTER,
    CLEAR,
};

static const struct {
    dv_str keys;
    enum action action;
} keys[] = {
    {DV_STR_INIT("\033[A"),  UP       },
    {DV_STR_INIT("\033OA"),  UP       },
    {DV_STR_INIT("\033[B"),  DOWN     },
    {DV_STR_INIT("\033OB"),  DOWN     },
    {DV_STR_INIT("\033[C"),  NEXT     },
    {DV_STR_INIT("\033OC"),  NEXT     },
    {DV_STR_INIT("\033[D"),  PREVIOUS },
    {DV_STR_INIT("\033OD"),  PREVIOUS },
    {DV_STR_INIT("\033[Z"),  PREVIOUS }, /* Shift-Tab */
    {DV_STR_INIT("\033[5~"), PAGE_UP  },
    {DV_STR_INIT("\033[6~"), PAGE_DOWN},
    {DV_STR_INIT("\033[H"),  FIRST    },
    {DV_STR_INIT("\033[1~"), FIRST    },
    {DV_STR_INIT("\033OH"),  FIRST    },
    {DV_STR_INIT("\033[F"),  LAST     },
    {DV_STR_INIT("\033[4~"), LAST     },
    {DV_STR_INIT("\033OF"),  LAST     },
    {DV_STR_INIT("q"),       QUIT     },
    {DV_STR_INIT("\003"),    QUIT     }, /* Ctrl-C, which a raw terminal sends as a key */
    {DV_STR_INIT("\t"),      NEXT     },
    {DV_STR_INIT("k"),       UP       },
    {DV_STR_INIT("j"),       DOWN     },
    {DV_STR_INIT("\002"),    PAGE_UP  }, /* Ctrl-B */
    {DV_STR_INIT("\006"),    PAGE_DOWN}, /* Ctrl-F */
    {DV_STR_INIT(" "),       PAGE_DOWN},
    {DV_STR_INIT("g"),       FIRST    },
    {DV_STR_INIT("G"),       LAST     },
    {DV_STR_INIT("/"),       FILTER   },
    {DV_STR_INIT("\033"),    CLEAR    }, /* alone */
};

/* Scrolls. A place past the end is corrected when the frame is drawn. */
static void scroll(struct dv_top_view *view, size_t by, bool is_up)
{
    size_t *at = &view->scroll[view->section];

    if (is_up)
        *at = *at > by ? *at - by : 0;
    else
        *at = by > SIZE_MAX - *at ? SIZE_MAX : *at + by;
}

static void act(struct dv_top_view *view, enum action action)
{
    size_t page = view->page > 1 ? view->page - 1 : 1; /* a row of the last one stays in sight */

    switch (action) {
    case QUIT:
        view->is_over = true;
        break;
    case NEXT:
        view->section = (view->section + 1) % DV_TOP_N_SECTIONS;
        break;
    case PREVIOUS:
        view->section = (view->section + DV_TOP_N_SECTIONS - 1) % DV_TOP_N_SECTIONS;
        break;
    case UP:
    case DOWN:
        scroll(view, 1, action == UP);
        break;
    case PAGE_UP:
    case PAGE_DOWN:
        scroll(view, page, action == PAGE_UP);
        break;
    case FIRST:
    case LAST:
        scroll(view, SIZE_MAX, action == FIRST);
        break;
    case FILTER:
        view->is_typing = true;
        break;
    case CLEAR:
        view->filter[0] = '\0';
        break;
    }
}

/* How many bytes an escape sequence has that we do not know: up to its final letter. */
static size_t unknown_length(dv_str bytes)
{
    size_t n = 1;

    if (bytes.p[0] != ESCAPE || bytes.n < 2 || (bytes.p[1] != '[' && bytes.p[1] != 'O'))
        return 1;
    n = 2;
    while (n < bytes.n && (bytes.p[n] < '@' || bytes.p[n] > '~'))
        n++;
    return n < bytes.n ? n + 1 : n;
}

static size_t press(struct dv_top_view *view, dv_str bytes)
{
    if (bytes.p[0] >= '1' && bytes.p[0] < (char)('1' + DV_TOP_N_SECTIONS)) {
        view->section = (enum dv_top_section)(bytes.p[0] - '1');
        return 1;
    }
    for (size_t i = 0; i < DV_COUNT(keys); i++) {
        if (!dv_str_starts_with(bytes, keys[i].keys))
            continue;
        if (keys[i].action == CLEAR && unknown_length(bytes) > 1)
            break; /* it begins something */
        act(view, keys[i].action);
        return keys[i].keys.n;
    }
    return unknown_length(bytes);
}

/* A character of the filter: all its bytes go in, or none. */
static void type_char(struct dv_top_view *view, dv_str bytes)
{
    size_t n = strlen(view->filter);

    if (n + bytes.n > DV_TOP_FILTER_MAX)
        return;
    memcpy(view->filter + n, bytes.p, bytes.n);
    view->filter[n + bytes.n] = '\0';
}

static void erase_char(struct dv_top_view *view)
{
    size_t n = strlen(view->filter);

    while (n > 0 && ((unsigned char)view->filter[n - 1] & 0xc0) == 0x80)
        n--;
    view->filter[n > 0 ? n - 1 : 0] = '\0';
}

static size_t type(struct dv_top_view *view, dv_str bytes)
{
    unsigned char c = (unsigned char)bytes.p[0];
    size_t n = 1;

    if (c == '\r' || c == '\n') {
        view->is_typing = false;
    } else if (c == ESCAPE && unknown_length(bytes) == 1) {
        view->is_typing = false;
        view->filter[0] = '\0';
    } else if (c == '\003') {
        view->is_over = true;
    } else if (c == 0x7f || c == '\b') {
        erase_char(view);
    } else if (c == 0x15) { /* Ctrl-U */
        view->filter[0] = '\0';
    } else if (c == ESCAPE) {
        return unknown_length(bytes);
    } else if (c >= ' ') {
        while (n < bytes.n && ((unsigned char)bytes.p[n] & 0xc0) == 0x80)
            n++;
        type_char(view, dv_str_slice(bytes, 0, n));
    }
    memset(view->scroll, 0, sizeof(view->scroll)); /* what is found is shown from its start */
    return n;
}

void dv_top_press(struct dv_top_view *view, dv_str bytes)
{
    while (bytes.n > 0 && !view->is_over) {
        size_t n = view->is_typing ? type(view, bytes) : press(view, bytes);

        bytes = dv_str_slice(bytes, n, bytes.n);
    }
}
