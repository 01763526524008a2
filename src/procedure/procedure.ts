/** What a procedure is written with: the builder, and the errors of resources. */
import { type AnyTRPCRouter, initTRPC, type TRPCError } from '@trpc/server'
import type { OpenApiMeta } from 'trpc-to-openapi'
import { DuplicateError } from '../../db/errors.ts'
import { Problem, toProblem } from '../errors/problem.ts'
import { transformer } from '../wire/encoding.ts'
import type { Call, CreateContext } from './call.ts'
import type { AccessMeta, RestMeta } from './meta.ts'

// Routers of several builders can be merged because these two are the same for all of them.
/** The formatter of errors, by which routers of this service are known. */
export const errorFormatter = ({ error }: { error: TRPCError }) => toProblem(error).shape
const encoding = { input: transformer, output: transformer }

declare const CONTEXT: unique symbol

/** In the type of a meta: what `ctx` of the procedure has, which tRPC's own types of procedures lack. No value has it. */
export interface Expecting<Context> {
  [CONTEXT]?(ctx: Context): void
}

/** The functions of `Expecting` in a record of procedures and records. */
type ExpectingIn<Entry> = 0 extends 1 & Entry // any
  ? never
  : Entry extends { _def: { procedure: true }; meta: infer Meta }
    ? Meta extends Expecting<infer Context>
      ? (ctx: Context) => void
      : never
    : { [Name in keyof Entry]: ExpectingIn<Entry[Name]> }[keyof Entry]

/** What all procedures of a router expect of `ctx`; unknown for nothing. */
type Expected<Router extends AnyTRPCRouter> =
  ExpectingIn<Router['_def']['record']> extends (ctx: infer Context) => void ? Context : never

/** The stores that the procedures of a router use. */
export type StoresOf<Router extends AnyTRPCRouter> =
  Expected<Router> extends { stores: infer Stores } ? Stores : unknown

type Added<Router extends AnyTRPCRouter> = Omit<Expected<Router>, keyof Call>

/** The `createContext` that the procedures of a router need: none, unless they expect what it adds to `ctx`. */
export type ContextFor<Router extends AnyTRPCRouter> =
  object extends Added<Router>
    ? { createContext?: CreateContext<Added<Router>> }
    : { createContext: CreateContext<Added<Router>> }

/**
 * Returns the builders of procedures (https://trpc.io/docs/server/procedures) that use these stores. A procedure
 * has one input and one output. Its middlewares (https://trpc.io/docs/server/middlewares) run only for a caller whose
 * API key allows the call, and may read a meta of the product, `Meta`.
 */
export const proceduresWith = <
  Stores,
  Context extends object = object,
  Meta extends object = object,
>() =>
  initTRPC
    .context<Call<Stores> & Context>()
    .meta<
      OpenApiMeta<{ rest?: RestMeta; access?: AccessMeta } & Meta> &
        Expecting<{ stores: Stores } & Context>
    >()
    .create({
      transformer: encoding,
      allowOutsideOfServer: true, // the client package's stand-in may run in a browser
      isDev: false, // with NODE_ENV=development, responses would contain stack traces
      errorFormatter,
    })

/** Returns the router of procedures, whichever stores they use. */
export const { router } = proceduresWith<unknown>()

/** Returns the value. Throws NOT_FOUND with this message if it is undefined, or false: no row was changed. */
export function found<Value>(value: Value | undefined | false, message: string): Value {
  if (value === undefined || value === false) throw new Problem('NOT_FOUND', message)
  return value
}

/**
 * Returns the result of a change. Throws CONFLICT with this message if a unique value is taken.
 * @public Resources with a unique value need it, such as test/visits.
 */
export async function unique<Result>(changing: Promise<Result>, message: string): Promise<Result> {
  try {
    return await changing
  } catch (cause) {
    throw cause instanceof DuplicateError ? new Problem('CONFLICT', message, { cause }) : cause
  }
}
