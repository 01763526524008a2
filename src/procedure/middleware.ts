/** What a middleware receives and returns (https://trpc.io/docs/server/middlewares). */
import { type Problem, toProblem } from '../errors/problem.ts'
import type { Call } from './call.ts'
import { ResolverOptions } from './operation.ts'

/** What `next()` returns, and what a middleware returns in turn. */
export type Result = Success | Failure

export interface Success {
  ok: true
  /** The checked output; of a list, its items. A middleware may replace it. */
  data: unknown
  /** The same as the resolver made it: of a list, the page. Undefined if a middleware made the result. */
  resolved?: Resolved
}

interface Failure {
  ok: false
  /** The error that the caller gets. */
  error: Problem
  /** What was thrown. */
  thrown: unknown
}

/** A checked output, and what the procedure returns for it: of a list, its items and the page. */
interface Resolved {
  data: unknown
  output: unknown
}

/** What a middleware passes on by `next(…)`. */
export interface More {
  ctx?: Record<string, unknown>
  input?: unknown
  getRawInput?: () => Promise<unknown>
}

export type Next = (more?: More) => Promise<Result>

/** A middleware as tRPC keeps it. Nothing checks what it returns: see `resultOf`. */
export type Middleware = (options: MiddlewareOptions) => Promise<Partial<Result> | undefined>

/** What a step receives: each may change it for those that follow. */
export interface State {
  /** The call, with what middlewares have added. */
  ctx: Call & Record<string, unknown>
  /** The checked input, or what a middleware has passed on in its place. */
  input: unknown
  getRawInput: () => Promise<unknown>
}

/** What a middleware receives (https://trpc.io/docs/server/middlewares). */
export class MiddlewareOptions extends ResolverOptions implements State {
  declare readonly ctx: State['ctx']
  readonly getRawInput: State['getRawInput']
  readonly type: 'query' | 'mutation'
  readonly meta: unknown
  next: Next

  constructor(
    { ctx, input, getRawInput }: State,
    { meta, batchIndex }: Pick<MiddlewareOptions, 'meta' | 'batchIndex'>,
    next: Next,
  ) {
    super(ctx, input, batchIndex)
    this.getRawInput = getRawInput
    this.type = ctx.operation.type
    this.meta = meta
    this.next = next
  }
}

// The types of tRPC have the marker, so that a middleware returns no other object.
const marker = 'middlewareMarker'

/** Returns the result of the resolver. */
export const success = (resolved: Resolved): Success & { marker: string } => ({
  ok: true,
  data: resolved.data,
  resolved,
  marker,
})

/** Returns the result of what was thrown. */
export const failure = (thrown: unknown): Failure & { marker: string } => ({
  ok: false,
  error: toProblem(thrown),
  thrown,
  marker,
})

/** Returns what a middleware of the procedure with this name has returned. Throws TypeError for what is no result. */
export function resultOf(returned: Partial<Result> | undefined, name: string): Result {
  if (returned?.ok === true) return returned as Success
  if (returned?.ok === false) return failure((returned as Failure).error)
  throw new TypeError(`A middleware of ${name} must return the result of next()`)
}
