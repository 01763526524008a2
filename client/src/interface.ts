/**
 * The type of the router for clients: inputs, outputs and errors, without the service's own types.
 */
import type {
  TRPCBuiltRouter,
  TRPCDefaultErrorShape,
  TRPCMutationProcedure,
  TRPCQueryProcedure,
  TRPCRouterRecord,
} from '@trpc/server'
import { appRouter } from '../../src/petstore/router.ts'

interface Router<ErrorShape, Procedures> {
  _def: { _config: { $types: { errorShape: ErrorShape } }; procedures: Procedures }
}

/** The procedures of a nested router, without their context and meta. */
type Inner<Procedures> = {
  [Name in keyof Procedures]: Procedures[Name] extends TRPCQueryProcedure<infer Built>
    ? TRPCQueryProcedure<{ input: Built['input']; output: Built['output']; meta: object }>
    : Procedures[Name] extends TRPCMutationProcedure<infer Built>
      ? TRPCMutationProcedure<{ input: Built['input']; output: Built['output']; meta: object }>
      : Inner<Procedures[Name]>
}

/**
 * Returns the same router, with a type for clients. Its declaration must not refer to the context and
 * the meta, or to the libraries that these import. The compiler would refer to a named type, even to
 * `Inner`; it writes out only an unnamed type that it infers for a value.
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
          : Inner<Procedures[Name]>
    }
  >
}

/** The router. Clients use only its type. */
export const clientRouter = forClients(appRouter)

export type AppRouter = typeof clientRouter
