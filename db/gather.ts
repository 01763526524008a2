/** Calls that meet share a trip to the database: those of one turn of the event loop, and those that arrive while a trip is under way. */
import { Deadline } from './deadline.ts'
import { OverloadedError } from './errors.ts'
import { refuseInside } from './inside.ts'
import { perDatabase } from './per-database.ts'
import type { Database } from './tables.ts'
import { join } from './trace.ts'

/** Milliseconds after which those who wait go on over another connection: the one before may hang. */
const PATIENCE = 50

/** Callers that may be there at once: a thousand who wait, beside those whose trip is under way. */
const MAX_CALLERS = 1_010

export interface Gathering<Question, Answer> {
  /** Answers questions in their order, in one trip. */
  ask(db: Database, questions: Question[], deadline: Deadline): Promise<Answer[]>
  /** Questions of the same lane may share a trip; those of different lanes do not wait for each other. */
  lane(question: Question): string
  /** How many one trip takes. */
  most: number
}

interface Caller<Question, Answer> {
  question: Question
  deadline: Deadline
  resolve(answer: Answer): void
  reject(error: unknown): void
}

/** The trip that is under way, and who waits for the next. */
interface Lane<Question, Answer> {
  waiting: Caller<Question, Answer>[]
  current: symbol
  timer: NodeJS.Timeout | undefined
}

/** In place of a trip: the next one leaves as soon as all who ask in this turn of the event loop are there. */
const LEAVING = Symbol('leaving')

/** Asks one question of a database. */
export type Ask<Question, Answer> = (
  db: Database,
  question: Question,
  deadline: Deadline,
) => Promise<Answer>

/**
 * A function that asks one question of many callers. Nobody joins a trip that has begun, so that
 * each sees what was acknowledged before it came. Who is given up by its deadline takes nobody
 * along; the trip is given up when nobody waits for it any more. In a transaction, which has its
 * connection for itself, each question is a trip of its own.
 */
export function gather<Question, Answer>(
  gathering: Gathering<Question, Answer>,
): Ask<Question, Answer> {
  const shareOn = perDatabase((db) => gatherOn(db, gathering))
  const shareIn = new WeakMap<Database, ReturnType<typeof gatherOn<Question, Answer>>>()
  return async (db, question, deadline) => {
    if (!db.isTransaction) {
      refuseInside() // before it joins others, whom its failure would take along
      return await shareOn(db)(question, deadline)
    }
    if (isShared(db)) {
      const shared = shareIn.get(db) ?? gatherOn(db, gathering)
      shareIn.set(db, shared)
      return await shared(question, deadline)
    }
    const [answer] = await gathering.ask(db, [question], deadline)
    return answer as Answer // as many answers as questions
  }
}

const sharedTransactions = new WeakSet<Database>()

/** Whether several works run concurrently in a transaction; then their questions share trips too. */
export const isShared = (transaction: Database): boolean => sharedTransactions.has(transaction)

/** Says that several works run concurrently in a transaction. */
export const share = (transaction: Database): void => void sharedTransactions.add(transaction)

function gatherOn<Question, Answer>(
  db: Database,
  { ask, lane: laneOf, most }: Gathering<Question, Answer>,
): (question: Question, deadline: Deadline) => Promise<Answer> {
  const lanes = new Map<string, Lane<Question, Answer>>()
  let callers = 0

  function depart(name: string, lane: Lane<Question, Answer>): void {
    clearTimeout(lane.timer)
    lane.timer = undefined
    const isWanted = ({ deadline, reject }: Caller<Question, Answer>) => {
      if (deadline.reason) reject(deadline.reason)
      return !deadline.reason
    }
    const group = lane.waiting.splice(0, most).filter(isWanted)
    const trip = Symbol()
    lane.current = trip
    void travel(group).then(() => {
      if (lane.current === trip) next(name, lane)
    })
    if (lane.waiting.length > 0) lane.timer = setTimeout(next, PATIENCE, name, lane)
  }

  function next(name: string, lane: Lane<Question, Answer>): void {
    if (lane.waiting.length > 0) depart(name, lane)
    else lanes.delete(name)
  }

  async function travel(group: Caller<Question, Answer>[]): Promise<void> {
    if (group.length === 0) return
    const deadline = jointDeadline(group)
    try {
      const answers = await ask(
        db,
        group.map(({ question }) => question),
        deadline,
      )
      // As many answers as questions.
      for (const [index, { resolve }] of group.entries()) resolve(answers[index] as Answer)
    } catch (error) {
      for (const { reject } of group) reject(error)
    }
  }

  return async (question, deadline) => {
    if (deadline.reason) throw deadline.reason
    const name = laneOf(question)
    let lane = lanes.get(name)
    if (!lane) {
      lane = { waiting: [], current: LEAVING, timer: undefined }
      lanes.set(name, lane)
      setImmediate(next, name, lane)
    } else if (lane.current !== LEAVING) {
      if (callers >= MAX_CALLERS) throw new OverloadedError('Too many wait for the database')
      lane.timer ??= setTimeout(next, PATIENCE, name, lane)
    }
    callers++
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const forget = deadline.onGiveUp(reject)
    try {
      lane.waiting.push({ question, deadline, resolve, reject })
      return await promise
    } finally {
      forget()
      callers--
    }
  }
}

/**
 * Ends when the deadlines of all callers have ended, and has a trace that joins theirs; of one caller
 * it is the caller's own.
 */
function jointDeadline(group: { deadline: Deadline }[]): Deadline {
  const [first] = group
  if (first && group.length === 1) return first.deadline
  const trace = first?.deadline.trace && join(group.map(({ deadline }) => deadline.trace))
  const joint = new Deadline(Number.POSITIVE_INFINITY, trace)
  let waiting = group.length
  for (const { deadline } of group) {
    deadline.onGiveUp((reason) => {
      if (--waiting === 0) joint.giveUp(reason)
    })
  }
  return joint
}
