/** What a middleware receives and returns (https://trpc.io/docs/server/middlewares). */
import type { Deadline } from '../../db/index.ts'
import { type Problem, toProblem } from '../errors/problem.ts'

/** What `next()` returns, and what a middleware returns in turn. */
export type Result = Success | { ok: false; error: Problem }

export interface Success {
  ok: true
  /** The checked output; of a list, its items. A middleware may replace it. */
  data: unknown
  /** The same as the resolver made it: of a list, the page. Undefined if a middleware made the result. */
  made?: Made
}

/** A checked output, and what the procedure returns for it: of a list, its items and the page. */
export interface Made {
  data: unknown
  output: unknown
}

/** What a middleware passes on by `next(…)`. */
export interface More {
  ctx?: Context
  input?: unknown
  getRawInput?: () => Promise<unknown>
}

export type Context = Record<string, unknown>

/** A middleware as tRPC keeps it. Nothing checks what it returns. */
export type Middleware = (options: object) => Promise<Partial<Result> | undefined>

/** What a step receives: each may change it for those that follow. */
export interface State {
  ctx: Context
  input: unknown
  getRawInput: () => Promise<unknown>
}

export type Next = (more?: More) => Promise<Result>

/** What a middleware receives (https://trpc.io/docs/server/middlewares). */
export class Options implements State {
  readonly ctx: Context
  readonly input: unknown
  readonly getRawInput: () => Promise<unknown>
  readonly type: 'query' | 'mutation'
  readonly path: string
  readonly meta: unknown
  readonly batchIndex: number
  readonly next: Next
  readonly #deadline: Deadline

  constructor(
    { name, type, meta }: Pick<Options, 'type' | 'meta'> & { name: string },
    { batchIndex, deadline }: { batchIndex: number; deadline: Deadline },
    { ctx, input, getRawInput }: State,
    next: Next,
  ) {
    this.ctx = ctx
    this.input = input
    this.getRawInput = getRawInput
    this.type = type
    this.path = name
    this.meta = meta
    this.batchIndex = batchIndex
    this.next = next
    this.#deadline = deadline
  }

  /** Aborts at the deadline. It is made when it is first asked for. */
  get signal(): AbortSignal {
    return this.#deadline.signal
  }
}

// The types of tRPC have the marker, so that a middleware returns no other object.
const marker = 'middlewareMarker'

/** Returns the result of the resolver. */
export const success = (made: Made) => ({ ok: true as const, data: made.data, made, marker })

/** Returns the result of what was thrown: with the error that the caller gets. */
export const failure = (thrown: unknown) => ({
  ok: false as const,
  error: toProblem(thrown),
  marker,
})

/** Returns what a middleware returned, with the error as callers get it; undefined for what is no result. */
export function resultOf(returned: Partial<Result> | undefined): Result | undefined {
  if (returned?.ok === true) return returned as Success
  return returned?.ok === false ? failure((returned as { error: unknown }).error) : undefined
}
