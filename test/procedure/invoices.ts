/** A resource in memory that uses all ready-made schemas in paths, queries, bodies and responses. */
import { TRPCError } from '@trpc/server'
import { z } from 'zod'
import { BY_ID, pageOf } from '../../db/order.ts'
import { createPet, getPet, listPets } from '../../src/petstore/pets/procedures.ts'
import { dateInput, dateOutput, dateTimeInput, dateTimeOutput } from '../../src/procedure/dates.ts'
import { decimalInput, decimalOutput } from '../../src/procedure/decimal.ts'
import { idempotentWrite } from '../../src/procedure/idempotent-write.ts'
import { int64Input, int64Output } from '../../src/procedure/int64.ts'
import { paged, pagingInputs } from '../../src/procedure/paging.ts'
import { procedure, router } from '../../src/procedure/procedure.ts'
import { quantityInput, quantityOutput } from '../../src/procedure/quantity.ts'
import { textInput, textOutput } from '../../src/procedure/text.ts'
import { write } from '../../src/procedure/write.ts'
import { described, resourcesOf } from '../support/procedures.ts'

const money = { precision: 10, scale: 2 }
const balance = { precision: 18, scale: 3, signed: true }

const fields = {
  amount: decimalInput(
    { description: 'What is to be paid, in euros.', examples: ['19.90'] },
    money,
  ),
  balance: decimalInput({ description: 'What is left, in euros.' }, balance).optional(),
  copies: quantityInput({ description: 'How many are printed.', examples: [2] }, 1000),
  dueOn: dateInput({ description: 'When it must be paid.', examples: ['2026-02-28'] }),
  sentAt: dateTimeInput({
    description: 'When it was sent: `null` when it was not.',
    examples: ['2026-01-02T03:04:05Z'],
  }).nullable(),
  note: textInput({ description: 'What else there is to say.' }, 40).optional(),
}

const NewInvoice = z.object(fields).meta({ id: 'NewInvoice', description: 'To add.' })

const invoiceId = int64Input({ description: 'Identifier of the invoice.' })
const InvoiceChange = z
  .object({ invoiceId, sentAt: fields.sentAt.optional() })
  .meta({ id: 'InvoiceChange', description: 'What is to change.' })

const Invoice = z
  .object({
    id: int64Output({ description: 'Identifier.' }),
    amount: decimalOutput({}, money),
    balance: decimalOutput({}, balance).optional(),
    copies: quantityOutput({}, 1000),
    dueOn: dateOutput(),
    sentAt: dateTimeOutput().nullable(),
    note: textOutput({}, 40).optional(),
  })
  .meta({ id: 'Invoice', description: 'An invoice.' })
type Invoice = z.output<typeof Invoice>

const Invoices = z.array(Invoice).meta({ id: 'Invoices', description: 'Invoices.' })

const ListInvoices = z.object({
  ...pagingInputs('invoices', BY_ID),
  dueOn: dateInput({ description: 'Keep only those due on this day.' }).optional(),
  amount: decimalInput({ description: 'Keep only those of this amount.' }, money).optional(),
  sentAt: dateTimeInput({ description: 'Keep only those sent then.' }).optional(),
  copies: quantityInput({ description: 'Keep only those printed as often.' }).optional(),
})

const example: Invoice = {
  id: 7n,
  amount: '19.90',
  copies: 2,
  dueOn: '2026-02-28',
  sentAt: new Date('2026-01-02T03:04:05Z'),
}
const exampleInput = { ...example, id: undefined, sentAt: '2026-01-02T03:04:05Z' }
const notFound = 'There is no such invoice'

/** A new router for each service. */
export function invoicesRouter() {
  const invoices: Invoice[] = []
  const find = (id: bigint): Invoice => {
    const invoice = invoices.find((each) => each.id === id)
    if (!invoice) throw new TRPCError({ code: 'NOT_FOUND', message: notFound })
    return invoice
  }
  return router({
    list: procedure
      .meta(described('GET', '/invoices', { paged: true, example: [example] }))
      .input(ListInvoices.prefault({}))
      .output(Invoices)
      .query(
        paged(
          { by: BY_ID },
          async ({ input: { limit, cursor = 0n, dueOn, amount, sentAt, copies } }) => {
            const found = invoices.filter(
              (each) =>
                each.id > cursor &&
                (dueOn === undefined || each.dueOn === dueOn) &&
                (amount === undefined || each.amount === amount) &&
                (sentAt === undefined || each.sentAt?.getTime() === sentAt.getTime()) &&
                (copies === undefined || each.copies === copies),
            )
            return pageOf(found, limit, BY_ID)
          },
        ),
      ),
    create: procedure
      .meta(described('POST', '/invoices', { creates: '/invoices/{id}', example, exampleInput }))
      .input(NewInvoice)
      .output(Invoice)
      .mutation(
        idempotentWrite(async ({ input }) => {
          const invoice: Invoice = { id: BigInt(invoices.length) + 1n, ...input }
          invoices.push(invoice)
          return invoice
        }),
      ),
    change: procedure
      .meta(
        described('PATCH', '/invoices/{invoiceId}', {
          notFound,
          example,
          exampleInput: { sentAt: null },
        }),
      )
      .input(InvoiceChange)
      .output(Invoice)
      .mutation(
        write(async ({ input: { invoiceId, sentAt } }) =>
          Object.assign(find(invoiceId), sentAt !== undefined && { sentAt }),
        ),
      ),
    get: procedure
      .meta(described('GET', '/invoices/{invoiceId}', { notFound, example }))
      .input(z.object({ invoiceId }))
      .output(Invoice)
      .query(async ({ input }) => find(input.invoiceId)),
    sentAt: procedure
      .meta(
        described('GET', '/days/{dueOn}/sent/{sentAt}/copies/{copies}/amounts/{amount}', {
          example,
        }),
      )
      .input(
        NewInvoice.omit({ note: true, balance: true }).extend({ sentAt: fields.sentAt.unwrap() }),
      )
      .output(Invoice)
      .query(async ({ input }) => ({ id: 7n, ...input })),
  })
}

/** The resources of a service that has invoices and the resources of the petstore. */
export const petAndInvoiceResources = () =>
  resourcesOf(router({ listPets, createPet, getPet, invoices: invoicesRouter() }))
