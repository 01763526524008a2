/** A load of writes and reads that records acknowledged pets and failed requests. */
import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'

const WRITERS = 6
const READERS = 6

/** Milliseconds between two requests of one client. */
const PAUSE = 5

/** What the load recorded between two calls of `begin`. */
export interface Phase {
  name: string
  /** Milliseconds since 1970. */
  start: number
  requests: number
  /** Milliseconds that the slowest request took. */
  slowest: number
  /** The number of failed requests, by operation and HTTP status or connection error. */
  failures: Record<string, number>
  /** Milliseconds from the start to the last failure; 0 when there was none. */
  lastFailure: number
  /** The longest gap in milliseconds before an acknowledged creation of this phase. */
  withoutWrites: number
}

export interface Load {
  /** The acknowledged pets: name by id. */
  acknowledged: ReadonlyMap<number, string>
  /** Begins a new phase. */
  begin(name: string): void
  /** Waits for the requests in flight; returns all phases. */
  stop(): Promise<Phase[]>
}

/** The fields of a pet that the load reads. */
interface Answer {
  id: number
  name: string
}

/** Starts clients of the service at `origin`. */
export function startLoad(origin: string, key: string): Load {
  const run = randomUUID()
  const acknowledged = new Map<number, string>()
  const phases: Phase[] = []
  let phase: Phase
  let pets = 0
  let newest: Answer | undefined
  let lastWrite = Date.now()
  let stopped = false

  const begin = (name: string) => {
    phase = {
      name,
      start: Date.now(),
      requests: 0,
      slowest: 0,
      failures: {},
      lastFailure: 0,
      withoutWrites: 0,
    }
    phases.push(phase)
  }
  const fail = (what: string) => {
    phase.failures[what] = (phase.failures[what] ?? 0) + 1
    phase.lastFailure = Date.now() - phase.start
  }

  /** The body of a successful response. */
  async function send(
    operation: string,
    path: string,
    init: RequestInit = {},
  ): Promise<Answer | undefined> {
    const start = performance.now()
    try {
      const headers = { authorization: `Bearer ${key}`, ...init.headers }
      const response = await fetch(`${origin}/v1${path}`, { ...init, headers })
      const body = (await response.json()) as Answer
      if (response.ok) return body
      fail(`${operation}: ${response.status}`)
    } catch (error) {
      const { cause, message } = error as Error
      fail(`${operation}: ${(cause as NodeJS.ErrnoException | undefined)?.code ?? message}`)
    } finally {
      phase.requests++
      phase.slowest = Math.max(phase.slowest, performance.now() - start)
    }
    return undefined
  }

  async function create(idempotencyKey?: string) {
    const name = `${run} ${pets++}`
    const request = {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(idempotencyKey && { 'idempotency-key': `"${idempotencyKey}"` }),
      },
      body: JSON.stringify({ name, categoryId: 1 }),
    }
    for (;;) {
      const pet = await send(`createPet${idempotencyKey ? ' with a key' : ''}`, '/pets', request)
      if (pet) {
        newest = pet
        acknowledged.set(pet.id, pet.name)
        phase.withoutWrites = Math.max(phase.withoutWrites, Date.now() - lastWrite)
        lastWrite = Date.now()
      }
      // With a key the client can retry.
      if (pet || !idempotencyKey) return
      await setTimeout(100)
    }
  }

  async function read() {
    if (newest) {
      const { id, name } = newest
      const pet = await send('getPet', `/pets/${id}`)
      if (pet && pet.name !== name) fail('getPet: another pet')
    }
    await send('listPets', '/pets?limit=5')
  }

  async function repeat(work: () => Promise<void>) {
    while (!stopped) {
      await work()
      await setTimeout(PAUSE)
    }
  }

  begin('before')
  const clients = [
    ...Array.from({ length: WRITERS }, (_, index) =>
      repeat(() => create(index % 2 === 0 ? randomUUID() : undefined)),
    ),
    ...Array.from({ length: READERS }, () => repeat(read)),
  ]
  return {
    acknowledged,
    begin,
    async stop() {
      stopped = true
      await Promise.all(clients)
      return phases
    },
  }
}
