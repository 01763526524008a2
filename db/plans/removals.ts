/** Removals of rows by id: `delete from … where id in (…)`, with one statement for all concurrent calls. */
import type { Kysely } from 'kysely'
import type { StatementPlan } from '../plan.ts'
import type { WithId } from '../tables.ts'

/** Maximum number of rows of a statement. They share a commit: more would gain next to nothing, and lock for longer. */
const MAX_ROWS = 100

/** Returns the plan that removes the row with an id, if it is there. */
export const removals = (table: WithId): StatementPlan<bigint, void> => ({
  use: 'write',
  maxSize: MAX_ROWS,
  isPadded: true,
  build({ kysely }, ids) {
    // Kysely has no types for a table that is a parameter.
    const untyped = kysely as unknown as Kysely<{ rows: { id: bigint } }>
    const wanted = ids.map((value) => value((id) => id))
    return untyped.deleteFrom(table as string as 'rows').where('id', 'in', wanted)
  },
  split: (_, ids) => ids.map(() => undefined),
  output() {},
})
