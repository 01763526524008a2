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
  _def: { _config: { $types: { errorShape: ErrorShape } }; procedures: Procedures }
}

/**
 * Returns the same router, with a type for clients. Its declaration must not refer to the context and
 * the meta, or to the libraries that these import. So the type below has no name: the compiler writes it
 * out in the declaration, and would only refer to a named one.
 */
export function forClients<
  ErrorShape extends TRPCDefaultErrorShape,
  Procedures extends TRPCRouterRecord,
>(router: Router<ErrorShape, Procedures>) {
  // Only the type changes.
  return router as unknown as TRPCBuiltRouter<
    { ctx: object; meta: object; errorShape: ErrorShape; transformer: true },
    {
      [Name in keyof Procedures]: Procedures[Name] extends TRPCQueryProcedure<infer Built>
        ? TRPCQueryProcedure<{ input: Built['input']; output: Built['output']; meta: object }>
        : Procedures[Name] extends TRPCMutationProcedure<infer Built>
          ? TRPCMutationProcedure<{ input: Built['input']; output: Built['output']; meta: object }>
          : never
    }
  >
}

/** The router. Clients use only its type. */
export const clientRouter = forClients(appRouter)

export type AppRouter = typeof clientRouter
