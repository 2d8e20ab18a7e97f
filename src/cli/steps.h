/* steps.h -- events and actions of the coordinator in words.
 *
 * What is printed goes to the FILE of the caller; nothing is kept. */
#ifndef KOFN_STEPS_H
#define KOFN_STEPS_H

#include <kofn/core.h>

#include <stdio.h>

void show_event(FILE *to, size_t line, const kofn_event *ev);
/* What the coordinator noted of itself. */
void show_note(FILE *to, size_t line, const kofn_note *x);
void show_action(FILE *to, const kofn_action *a);
/* Of the products that are open. */
void show_state(FILE *to, const kofn_core *c);

#endif
