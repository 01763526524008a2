/** The router as its clients see it: inputs, outputs and errors, nothing of how they are served. */
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

/** The procedures of a router that is part of another one, without their context and meta. */
type Inner<Procedures> = {
  [Name in keyof Procedures]: Procedures[Name] extends TRPCQueryProcedure<infer Built>
    ? TRPCQueryProcedure<{ input: Built['input']; output: Built['output']; meta: object }>
    : Procedures[Name] extends TRPCMutationProcedure<infer Built>
      ? TRPCMutationProcedure<{ input: Built['input']; output: Built['output']; meta: object }>
      : Inner<Procedures[Name]>
}

// The declarations of a client must lead neither to the context and the meta nor to the libraries
// that these import. A name would, even that of `Inner`; but what is inferred for a value from a type
// without a name, the compiler spells out.
export function forClients<
  ErrorShape extends TRPCDefaultErrorShape,
  Procedures extends TRPCRouterRecord,
>(router: Router<ErrorShape, Procedures>) {
  // The type leaves things out; the value is the same.
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

/** The router, for its type. */
export const clientRouter = forClients(appRouter)

export type AppRouter = typeof clientRouter
