"""The tables of a run log. SQLite stores the comments, so that ``.schema`` shows them for any log.

Each line is one column with its meaning; the documentation and the tests read them from here.
"""

from __future__ import annotations

from cheesebench.experiment.records import FORMAT

#: Marks the file as a run log in SQLite's header ("CHZB").
APPLICATION_ID = 0x43485A42

_LIFE_KEY = """\
    model TEXT NOT NULL,  -- as --model names it
    protocol TEXT NOT NULL,  -- with @edition if it is not the default one
    view TEXT NOT NULL,  -- what the subject is shown the arena in
    variant TEXT NOT NULL,  -- what a study or control changes, empty for the plain cell
    subject INTEGER NOT NULL,  -- from 0"""

# Without rowids the rows lie in the order of their keys, whichever subject finished first; and nothing in
# trials, events and lives tells when it was written: the same run gives the same rows.
SCHEMA = f"""
CREATE TABLE manifest (  -- what the run is
    key TEXT PRIMARY KEY,  -- format, run_id, created, versions, git, options (with the seed), plugins (of others), protocols (resolved texts and hashes), signature (of whoever made it)
    value TEXT NOT NULL,  -- JSON
    seal INTEGER NOT NULL  -- checksum of the row: what the disk or somebody has changed is not believed
) STRICT, WITHOUT ROWID;
CREATE TABLE cells (  -- what was planned
    position INTEGER PRIMARY KEY,  -- order of the plan
    model TEXT NOT NULL,  -- as --model names it
    protocol TEXT NOT NULL,  -- with @edition if it is not the default one
    view TEXT NOT NULL,  -- what the subject is shown the arena in
    variant TEXT NOT NULL,  -- what a study or control changes, empty for the plain cell
    plan TEXT NOT NULL,  -- JSON: the protocol's hash, design, numbers of subjects and trials, estimand, reference, margin, agent and settings of a language model
    seal INTEGER NOT NULL,  -- checksum of the row: what the disk or somebody has changed is not believed
    UNIQUE (model, protocol, view, variant)
) STRICT;
CREATE TABLE trials (  -- what happened: a row for each trial, written in one transaction when it was finished, also for one that could not be run
{_LIFE_KEY}
    trial INTEGER NOT NULL,  -- from 0 over the life
    block TEXT NOT NULL,  -- block of the schedule
    session INTEGER NOT NULL,  -- from 1 over the life
    outcome TEXT,  -- name of the end, as the protocol calls it: timeout at the step limit
    success INTEGER,  -- 1 or 0, NULL where the protocol declares no success, and for a missing trial
    compared INTEGER NOT NULL,  -- 1 if the reference is about this kind of trial
    reward REAL NOT NULL,  -- sum over the trial
    steps INTEGER NOT NULL,  -- steps, waited ones included
    path_length INTEGER NOT NULL,  -- steps to another cell
    bumps INTEGER NOT NULL,  -- FORWARDs that led nowhere
    actions TEXT NOT NULL,  -- one letter for each step: F, L, R, S, and a point for a frozen step that nobody was asked about
    counters TEXT NOT NULL,  -- JSON: counters of the protocol
    measures TEXT NOT NULL,  -- JSON: measures of the protocol
    variables TEXT NOT NULL,  -- JSON: values of the protocol's variables at the end
    tally TEXT NOT NULL,  -- JSON: what the agent counted (calls, unparsed, ...)
    missing TEXT NOT NULL,  -- empty, or why it was not run: infrastructure, budget, settled (it could not have changed the verdict)
    seal INTEGER NOT NULL,  -- checksum of the row: what the disk or somebody has changed is not believed
    PRIMARY KEY (model, protocol, view, variant, subject, trial)
) STRICT, WITHOUT ROWID;
CREATE TABLE events (  -- the rules that fired
{_LIFE_KEY}
    trial INTEGER NOT NULL,  -- from 0 over the life
    position INTEGER NOT NULL,  -- order within the trial
    step INTEGER NOT NULL,  -- of the trial, from 1
    state TEXT NOT NULL,  -- that it fired in
    event TEXT NOT NULL,  -- its trigger as the protocol words it, in brackets what that was
    source TEXT NOT NULL,  -- file and line of the rule
    PRIMARY KEY (model, protocol, view, variant, subject, trial, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE lives (  -- who is finished
{_LIFE_KEY}
    trials INTEGER NOT NULL,  -- trials of the complete life: a subject without a row is not finished
    PRIMARY KEY (model, protocol, view, variant, subject)
) STRICT, WITHOUT ROWID;
CREATE TABLE calls (  -- what models were asked and replied: a row for each call, written as soon as the reply is there, so that it is never paid for again
{_LIFE_KEY}
    trial INTEGER NOT NULL,  -- from 0 over the life
    call INTEGER NOT NULL,  -- from 0 within the trial
    digest TEXT NOT NULL,  -- over the whole prompt and all parameters: a resumed run must ask the same
    system TEXT NOT NULL,  -- the system prompt, as a key of texts
    asked TEXT NOT NULL,  -- the last message: what lies between is made of earlier calls (cheesebench show puts it together)
    reply TEXT NOT NULL,  -- without reasoning
    reasoning TEXT NOT NULL,  -- where the server (or a tag) marks it as such
    finish TEXT NOT NULL,  -- stop, length (cut off at the most tokens) or other
    fault TEXT NOT NULL,  -- why there is no reply, if it was refused for what it asked
    served_by TEXT NOT NULL,  -- what the server said it was
    prompt_tokens INTEGER NOT NULL,  -- as the server counted, cached ones included
    completion_tokens INTEGER NOT NULL,  -- reasoning included
    cached_tokens INTEGER NOT NULL,  -- of the prompt
    reasoning_tokens INTEGER NOT NULL,  -- of the completion
    cost REAL,  -- dollars, NULL where no price is known
    seconds REAL NOT NULL,  -- of the attempt that was answered
    attempts INTEGER NOT NULL,  -- retries included
    written_tokens INTEGER NOT NULL,  -- of the prompt, put into a cache where that has a price of its own
    malformed INTEGER NOT NULL,  -- attempts whose answer was no reply: no JSON, the wrong shape, a tool call
    seal INTEGER NOT NULL  -- checksum of the row and its system prompt: what the disk or somebody has changed is not believed
) STRICT;
CREATE UNIQUE INDEX calls_by_life ON calls (model, protocol, view, variant, subject, trial, call);
CREATE TABLE texts (  -- long texts that many calls share
    digest TEXT PRIMARY KEY,  -- of the text
    text TEXT NOT NULL  -- as it was sent
) STRICT, WITHOUT ROWID;
CREATE TABLE journal (  -- what happened to the run
    id INTEGER PRIMARY KEY,  -- in the order of time
    time TEXT NOT NULL,  -- UTC
    kind TEXT NOT NULL,  -- created, started, look, settled, finished, closed, server, retry, warning, error, traceback
    text TEXT NOT NULL,  -- for people
    model TEXT,  -- the cell that it is about, if it is about one
    protocol TEXT,  -- of that cell
    view TEXT,  -- of that cell
    variant TEXT,  -- of that cell
    subject INTEGER  -- that it is about, if it is about one
) STRICT;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
"""  # noqa: E501  # a line is a column
