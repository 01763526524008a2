/** One animal. */
import { useQuery } from '@tanstack/react-query'
import { Page } from './Page.tsx'
import { Portrait, Status } from './PetCard.tsx'
import { useTRPC } from './petstore.ts'
import { links } from './route.ts'
import { Trouble } from './Trouble.tsx'

/** The input of listPets that gives one animal: getPet is deprecated and ends in 2030. */
export const onlyPet = (id: bigint) => ({ cursor: id - 1n, limit: 1 })

export function PetPage({ id }: { id: bigint }) {
  const trpc = useTRPC()
  const query = useQuery(trpc.listPets.queryOptions(onlyPet(id)))
  const pet = query.data?.find((found) => found.id === id)

  if (query.data && !pet) {
    return (
      <Page title="Not in the catalogue">
        <p>There is no animal with the number {String(id)}.</p>
        <BackLink />
      </Page>
    )
  }
  return (
    <Page title={pet?.name ?? `Animal ${id}`}>
      <Trouble query={query} />
      {query.isPending && (
        <div className="pet skeleton" role="img" aria-label="Loading the animal" />
      )}
      {pet && (
        <article className="pet">
          <Portrait pet={pet} />
          <dl>
            <dt>Availability</dt>
            <dd>
              <Status status={pet.status} />
            </dd>
            <dt>Category</dt>
            <dd>{String(pet.categoryId)}</dd>
            <dt>Number</dt>
            <dd>{String(pet.id)}</dd>
          </dl>
        </article>
      )}
      <BackLink />
    </Page>
  )
}

function BackLink() {
  return (
    <p>
      <a href={links.catalogue()}>← All animals</a>
    </p>
  )
}
