"""Where everything is in the memory of the compiled kernel: a program is one array of whole numbers, a life one row.

A program (``code``, int64) is full of records. A record is known by its address, and its fields stand at fixed places
behind it: ``code[rule + GUARD]``. Address 0 means that there is none. A list is its length and then its entries.
Numbers that are computed with stand in a second array, ``numbers`` (float64).

A life is a row of int64 (``lane``) and a row of float64 (``real``): fields, then slots. A slot holds a value of the
language: its kind, what it refers to (a name's number, or the bits of a set) and, for numbers, its number. The slots
are those of the variables, the measures, and above them the stack on which expressions are computed.
"""

from __future__ import annotations

#: Kinds of values.
NONE, TRUTH, WHOLE, REAL, NAME, SET = range(6)
#: What stands for no name.
NOTHING = -1
#: Most members of all sets together, and most events: they are bits of an int64.
BITS = 62
#: Whole numbers below this are exact as floats too.
EXACT = 2.0**53

#: Scopes, as bits.
SUBJECT_SCOPE, BLOCK_SCOPE, SESSION_SCOPE, TRIAL_SCOPE = 1, 2, 4, 8

#: The head of a program. First what the slots and the other parts of a lane are: how many, or where they begin.
(
    EMPTY, STACK, MEASURES, SUCCESS, OCCUPIED, GROUPS, CONSIDERED, CHANCES, RECENT,
    # The schedule, what begins with a scope (lists of (slot, scope, constant)), draws; entries (expression, state).
    BLOCKS, BLOCKS_END, VARIABLES, COUNTERS, DRAWS, ENTRY, LIMIT_FIXED, LIMIT_SLOT, START, START_REFERS, CARRY, FACE,
    FACE_SLOT, RANDOM_NAME, HEADING_NAMES,
    # What happens in a step, and what is computed at the end; ends are (expression, name).
    WATCH, FINISH, EACH, SUCCEEDED, MEASURED, TIMEOUT_NAME, WHERE_MASK, READS_TRACE,
    # The arena: of cells, of names (every name has a number), of names x cells, of groups x cells; members of sets.
    TURNS, CELLS, COLUMNS, ROWS, MEMBER_AT, PLACE_CELLS, PLACE_INSIDE, SOLIDS, MEMBERS, ELEMENT_OF, ELEMENT_NAMES,
    ELEMENT_NUMBERS,
    # Parts of the keys of random numbers.
    TEXT_START, TEXT_FACE, TEXT_EACH, TEXT_PLACE, TEXT_CHANCE, TEXT_COMPOSED, HEAD,
) = range(51)  # fmt: skip

#: A constant or a cell of a draw: kind, what it refers to, and where its number is.
KIND, REFERS, NUMBER, CONSTANT_SIZE = range(4)

#: A rule.
(
    MASK,
    AFTER,
    WHO,
    WHO_SLOT,
    POSSIBLE,
    NAME_BITS,
    GUARD,
    CHANCE,
    CHANCE_SLOT,
    CHANCE_TEXT,
    EFFECTS,
    GO,
    END,
    RULE_SIZE,
) = range(14)
#: How a rule finds ``it``: not at all, among fixed targets, among those that a variable holds.
NOBODY, FIXED, HELD = range(3)

#: Effects: lists of (slot, expression), (slot, expression), slot; the reward; whom or where the subject is placed.
ANYTHING, SETS, ADDS, COUNTS, PAYS, CONSTANT_PAY, PLACES_AT, PLACE_REFERS, EFFECTS_SIZE = range(9)
#: Where ``place`` (and ``start: at``) finds its place: nowhere, by name, in a variable, in ``it``.
NOWHERE, BY_NAME, IN_SLOT, IN_IT = range(4)

#: A state.
STATE_NAME, ENTERING, DURING, STATE_RULES, LISTEN, TIMED, BUSY, PAY, STEADY, LOOK_SLOTS, STATE_NUMBER, STATE_SIZE = (
    range(12)
)

#: A block of the schedule: its name, sizes, a list of (slot, scope, constant), and until: count, of, a list of names.
BLOCK_NAME, BLOCK_SESSIONS, BLOCK_TRIALS, BLOCK_REPEAT, BLOCK_VALUES, UNTIL_COUNT, UNTIL_OF, UNTIL_NAMES, BLOCK_SIZE = (
    range(9)
)

#: A draw. Its memory in a lane: how often it was drawn, the last values of the first column, the permuted block.
(
    DRAW_SCOPE, DRAW_ORDER, DRAW_SLOTS, DRAW_ROWS, DRAW_CELLS, DRAW_FIRSTS, DRAW_ELEMENTS, DRAW_PICK, DRAW_COPIES,
    DRAW_MAX_RUN, DRAW_KEEP_IF, DRAW_TEXT, DRAW_MEMORY, DRAW_SIZE,
) = range(14)  # fmt: skip
RANDOM, SHUFFLE, CYCLE, BY_SUBJECT = range(4)
DRAWN, RUN_LENGTH, RUN_VALUE, DRAWN_BLOCK = range(4)

#: Fields of a life. A step on which nothing happens touches only the first eight, which share a line of the cache.
(
    POSE, STEPS, WAKE, STATE, TABLE, PAGE, OVER, STALE,
    ENTERED, LIMIT, TRUNCATED, OUTCOME, LAST, IT, BLOCK, REPEAT, SESSION, TRIAL, SUBJECT, OPEN, BEGAN,
    TRIAL_NUMBER, PLACINGS, FIRST, PLACED_STEP, PLACED_POSE, RECENT_COUNT, ERROR, ERROR_STATE, ERROR_KIND, ERROR_REFERS,
    PREFIX, SLOTS,
) = range(33)  # fmt: skip
ERROR_NUMBER, REALS = range(2)

#: What can go wrong in a life.
(FINE, NO_FLOOR, BAD_LIMIT, BAD_REWARD, BAD_FACE, NOT_A_NUMBER) = range(6)

#: Instructions of an expression, of one argument each. The value of an expression is on top of the stack.
(
    CONSTANT, VARIABLE, IT_NAME, LAST_NAME, BLOCK_NUMBER, SESSION_NUMBER, TRIAL_NUMBER_IN, SUBJECT_NUMBER, STEP_NUMBER,
    STATE_IS, COLUMN_HERE, ROW_HERE, HEADING_HERE, MOVES_MADE, WHERE, SIZE, TIME, ENTRIES, DISTANCE, BEARING_ERROR,
    DEPARTURE_ERROR, COLUMN, ROW, NOT, NEGATE, EQUAL, UNEQUAL, LESS, AT_MOST, MORE, AT_LEAST, ADD, SUBTRACT, MULTIPLY,
    DIVIDE, IN, AND_THEN, OR_ELSE, AS_TRUTH, JUMP, JUMP_UNLESS,
) = range(41)  # fmt: skip
