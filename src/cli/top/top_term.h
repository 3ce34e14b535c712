/* top_term.h - a terminal as a screen: raw keys in, frames out, and everything as it was after. */
#ifndef DV_CLI_TOP_TERM_H
#define DV_CLI_TOP_TERM_H

#include <stdbool.h>
#include <termios.h>

#include "base/defs.h"

struct dv_arena;
struct dv_err;
struct dv_top_frame;

struct dv_top_term {
    int in;
    int out;
    struct termios before;
    struct dv_arena *arena; /* of what is on the screen */
    struct dv_top_frame *shown;
};

/* Takes the screen: the terminal's other one, without a cursor. */
DV_CHECKED bool dv_top_term_open(struct dv_top_term *term, int in, int out, struct dv_err *err);
/* Gives it back as it was. */
void dv_top_term_close(struct dv_top_term *term);
/* 80 x 24 where nothing else is known. */
void dv_top_term_size(const struct dv_top_term *term, unsigned *width, unsigned *height);
/* Writes the lines that are others than before, all at once. Takes `arena`, which holds the frame.
 */
void dv_top_term_show(struct dv_top_term *term, struct dv_top_frame *frame, struct dv_arena *arena);
/* The screen holds something else now: the next frame is written whole. */
void dv_top_term_forget(struct dv_top_term *term);

#endif
