/** One animal. */

import type { PetStatus } from '@petstore-catalogue/petstore/client'
import { useQuery } from '@tanstack/react-query'
import { Nothing } from './Nothing.tsx'
import { Page } from './Page.tsx'
import { Status } from './PetCard.tsx'
import { Portrait } from './Portrait.tsx'
import { useTRPC } from './petstore.ts'
import { links } from './route.ts'
import { categoryOf, statusNames } from './shop.ts'
import { Trouble } from './Trouble.tsx'

/** The input of listPets that gives one animal: getPet is deprecated and ends in 2030. */
export const onlyPet = (id: bigint) => ({ cursor: id - 1n, limit: 1 })

interface Props {
  id: bigint
  /** The status by which the catalogue is filtered, to come back to. */
  filter: PetStatus | undefined
}

export function PetPage({ id, filter }: Props) {
  const trpc = useTRPC()
  const query = useQuery(trpc.listPets.queryOptions(onlyPet(id)))
  const pet = query.data?.find((found) => found.id === id)
  const back = (
    <a className="back" href={links.catalogue(filter)}>
      <span aria-hidden="true">← </span>
      {filter ? `${statusNames[filter]} animals` : 'All animals'}
    </a>
  )

  if (query.data && !pet) {
    return (
      <>
        {back}
        <Page title="Not in the catalogue">
          <Nothing>
            <p>There is no animal with the number {String(id)}.</p>
          </Nothing>
        </Page>
      </>
    )
  }
  const category = pet && categoryOf(pet.categoryId)
  return (
    <>
      {back}
      <div className="pet">
        {pet && category ? (
          <Portrait species={category.species} name={pet.name} />
        ) : (
          <div className="portrait skeleton" />
        )}
        <div>
          <Page title={pet?.name ?? `Animal ${id}`}>
            <Trouble query={query} />
            {pet && category && (
              <>
                <Status status={pet.status} />
                <dl>
                  <dt>Category</dt>
                  <dd>{category.name}</dd>
                  <dt>Number</dt>
                  <dd>{String(pet.id)}</dd>
                </dl>
              </>
            )}
          </Page>
        </div>
      </div>
    </>
  )
}
