"""Memory layout of the compiled kernel: a program is one array of integers, a subject one row.

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

#: The head of a program.
(
    EMPTY,  # number of the empty name: before the first trial, block and state are records at address 0
    # The parts of a lane: slots of the stack, of the first measure, of success; where the others begin, or how many.
    STACK, MEASURES, SUCCESS, OCCUPIED, GROUPS, CONSIDERED, CHANCES, RECENT,
    # The schedule; variables (slot, scope, constant), counters and draws; entries (expression, state).
    BLOCKS, BLOCKS_END, VARIABLES, COUNTERS, DRAWS, ENTRY,
    # The limit, or (where it is 0) its slot; where a trial begins; a heading's name, or its slot.
    LIMIT_FIXED, LIMIT_SLOT, START, START_REFERS, CARRY, FACE, FACE_SLOT, RANDOM_NAME, HEADING_NAMES,
    # Rules, ends (expression, name, state to go to) and effects of every step; expressions for its result; events that
    # move `where()`.
    WATCH, FINISH, EACH, SUCCEEDED, MEASURED, TIMEOUT_NAME, WHERE_MASK, READS_TRACE,
    # The arena. Of each cell: column, row; of groups x cells: the member.
    TURNS, CELLS, COLUMNS, ROWS, MEMBER_AT,
    # Of each name: list of cells, flags of all cells, solids (how many, sum of columns, of rows), members, bit in sets.
    PLACE_CELLS, PLACE_INSIDE, SOLIDS, MEMBERS, ELEMENT_OF,
    # Of each bit in sets: its name, or its number.
    ELEMENT_NAMES, ELEMENT_NUMBERS,
    # Parts of the keys of random numbers.
    TEXT_START, TEXT_FACE, TEXT_EACH, TEXT_PLACE, TEXT_CHANCE, TEXT_COMPOSED, HEAD,
) = range(51)  # fmt: skip

#: A constant, or a cell of a draw: kind, what it refers to, and where its number is.
KIND, REFERS, NUMBER, CONSTANT_SIZE = range(4)

#: A rule. Fields that are expressions, lists, effects or states are addresses.
(
    MASK,  # events that can fire it; 0 where only time can
    AFTER,
    WHO, WHO_SLOT, POSSIBLE, NAME_BITS,  # how `it` is found: its variable, possible names, the event of each name
    GUARD,
    CHANCE, CHANCE_SLOT, CHANCE_TEXT,  # `p`: expression, place of its count, part of its key
    EFFECTS, GO, END, RULE_SIZE,
) = range(14)  # fmt: skip
#: How a rule finds ``it``: not at all, among fixed targets, among those that a variable holds.
NO_TARGET, FIXED, HELD = range(3)

#: Effects.
(
    ANYTHING,  # whether there are any
    SETS, ADDS, REMOVES, COUNTS,  # lists of (slot, expression), the same, the same, slot
    PAYS, CONSTANT_PAY,  # expression, or where the fixed reward is
    PLACES_AT, PLACE_REFERS, EFFECTS_SIZE,
) = range(10)  # fmt: skip
#: Where ``place`` (and ``start: at``) finds its place: nowhere, by name, in a variable, in ``it``.
NOWHERE, BY_NAME, IN_SLOT, IN_IT = range(4)

#: A state: name; effects of entering it and of each step; rules; events it listens to, and other fields of ``State``;
#: slots of the variables that it shows or closes; its number.
(
    STATE_NAME, ENTERING, DURING, STATE_RULES, LISTEN, TIMED, BUSY, PAY, STEADY, LOOK_SLOTS, STATE_NUMBER, STATE_SIZE,
) = range(12)  # fmt: skip

#: A block of the schedule: name, sizes, a list of (slot, scope, constant), and until: count, of, a list of names;
#: most trials of all repetitions together, or 0.
(
    BLOCK_NAME, BLOCK_SESSIONS, BLOCK_TRIALS, BLOCK_REPEAT, BLOCK_VALUES, UNTIL_COUNT, UNTIL_OF, UNTIL_NAMES,
    BLOCK_MOST, BLOCK_SIZE,
) = range(10)  # fmt: skip

#: A draw: scope, order, slots of its columns, number of rows; of rows x columns: constants; of each row: the number of
#: its first value among the different ones; of rows x columns: bits in sets; where its memory in a lane begins.
(
    DRAW_SCOPE, DRAW_ORDER, DRAW_SLOTS, DRAW_ROWS, DRAW_CELLS, DRAW_FIRSTS, DRAW_ELEMENTS, DRAW_PICK, DRAW_COPIES,
    DRAW_MAX_RUN, DRAW_KEEP_IF, DRAW_TEXT, DRAW_MEMORY, DRAW_SIZE,
) = range(14)  # fmt: skip
RANDOM, SHUFFLE, CYCLE, BY_SUBJECT, BALANCED = range(5)
#: Memory of a draw: how often it was drawn, length and first value of the last run, the permuted block.
DRAWN, RUN_LENGTH, RUN_VALUE, DRAWN_BLOCK = range(4)

#: Fields of a life.
(
    # A step on which nothing happens touches only these, which share a line of the cache.
    POSE, STEPS, WAKE, STATE, TABLE, PAGE, OVER,
    STALE,  # whether TABLE and PAGE must be looked up, because the state or what it shows has changed
    ENTERED, LIMIT, TRUNCATED, OUTCOME, LAST, IT,
    BLOCK, REPEAT, SESSION, TRIAL, SUBJECT,
    OPEN, BEGAN, RECENT_COUNT,  # whether a block goes on; scopes that begin with the next trial; outcomes noted
    BLOCK_TOTAL,  # trials of all repetitions of the block
    TRIAL_NUMBER, PLACINGS,  # what keys of random numbers count
    FIRST, PLACED_STEP, PLACED_POSE,  # pose at the beginning; where and when the subject was put elsewhere at last
    ERROR, ERROR_STATE, ERROR_KIND, ERROR_REFERS,
    PREFIX,  # bytes of what all keys of the life begin with
    SHARED, SHARED_PREFIX,  # where the text that all subjects share begins, and bytes of what its keys begin with
    LIFE_OVER,  # whether the trial that has ended was the last one of the schedule
    SLOTS,
) = range(37)  # fmt: skip
ERROR_NUMBER, REALS = range(2)

#: What can go wrong in a life.
FINE, NO_FLOOR, BAD_LIMIT, BAD_REWARD, BAD_FACE, NOT_A_NUMBER = range(6)

#: Instructions of an expression. Each has an argument: an address, a slot, a group, or 0.
(
    CONSTANT, VARIABLE,
    # Built-in names; those up to MOVES_MADE put a value on the stack.
    IT_NAME, LAST_NAME, BLOCK_NUMBER, SESSION_NUMBER, TRIAL_NUMBER_IN, SUBJECT_NUMBER, STEP_NUMBER, STATE_IS,
    COLUMN_HERE, ROW_HERE, HEADING_HERE, MOVES_MADE,
    # Functions; those from SIZE to ROW replace the value on top.
    WHERE, SIZE, TIME, ENTRIES, DISTANCE, BEARING_ERROR, DEPARTURE_ERROR, COLUMN, ROW,
    NOT, NEGATE, ABSOLUTE, ROUND, FLOOR, EXPONENTIAL, LOGARITHM,
    # Operators of the two values on top.
    EQUAL, UNEQUAL, LESS, AT_MOST, MORE, AT_LEAST, ADD, SUBTRACT, MULTIPLY, DIVIDE, MODULO, SMALLER, LARGER, IN,
    # Jumps; AND_THEN keeps what is false, OR_ELSE what is true, JUMP_UNLESS nothing.
    AND_THEN, OR_ELSE, AS_TRUTH, JUMP, JUMP_UNLESS,
) = range(49)  # fmt: skip
