/** What can wait: one piece of it in each turn of the event loop, so that nobody else waits for it. */

const waiting: (() => void)[] = []

/** Runs something when what came before it has run. What new connections ask for comes first. */
export function later(run: () => void): void {
  waiting.push(run)
  if (waiting.length === 1) setImmediate(takeTurn)
}

function takeTurn(): void {
  try {
    // It stays in the line while it runs: what it adds must not begin a second round of turns.
    waiting[0]?.()
  } finally {
    waiting.shift()
    if (waiting.length > 0) setImmediate(takeTurn)
  }
}
