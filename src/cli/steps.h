/* steps.h -- events and actions of the coordinator as text.
 *
 * Prints to the caller's FILE and keeps nothing. */
#ifndef KOFN_STEPS_H
#define KOFN_STEPS_H

#include <kofn/core.h>

#include <stdio.h>

void show_event(FILE *to, size_t line, const kofn_event *ev);
/* Prints a note that the coordinator journaled about its own work. */
void show_note(FILE *to, size_t line, const kofn_note *x);
void show_action(FILE *to, const kofn_action *a);
/* Prints the state of the open products. */
void show_state(FILE *to, const kofn_core *c);

#endif
