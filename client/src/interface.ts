/** The type of the router for clients: inputs, outputs and errors, without the service's own types. */
import type {
  TRPCBuiltRouter,
  TRPCDefaultErrorShape,
  TRPCMutationProcedure,
  TRPCQueryProcedure,
  TRPCRouterRecord,
} from '@trpc/server'
import { appRouter } from '../../src/petstore/resources.ts'

interface Router<ErrorShape, Procedures> {
  _def: { _config: { $types: { errorShape: ErrorShape } }; record: Procedures }
}

/** A procedure or a nested router. As a conditional type it is written out in a declaration, too. */
type ForClients<Entry> =
  Entry extends TRPCQueryProcedure<infer Built>
    ? TRPCQueryProcedure<{ input: Built['input']; output: Built['output']; meta: object }>
    : Entry extends TRPCMutationProcedure<infer Built>
      ? TRPCMutationProcedure<{ input: Built['input']; output: Built['output']; meta: object }>
      : Entry extends TRPCRouterRecord
        ? { [Name in keyof Entry]: ForClients<Entry[Name]> }
        : never

/**
 * Returns the same router, with a type for clients. Its declaration must not refer to the context and
 * the meta, or to the libraries that these import. So the mapped types have no name: the compiler writes them
 * out in the declaration, and would only refer to named ones.
 */
export function forClients<
  ErrorShape extends TRPCDefaultErrorShape,
  Procedures extends TRPCRouterRecord,
>(router: Router<ErrorShape, Procedures>) {
  // Only the type changes.
  return router as unknown as TRPCBuiltRouter<
    { ctx: object; meta: object; errorShape: ErrorShape; transformer: true },
    { [Name in keyof Procedures]: ForClients<Procedures[Name]> }
  >
}

/** The router. Clients use only its type. */
export const clientRouter = forClients(appRouter)

export type AppRouter = typeof clientRouter
